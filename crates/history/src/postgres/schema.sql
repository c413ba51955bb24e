-- History of OPC UA variables. Times are given twice: as timestamps for queries, and as ticks of 100 ns since
-- 1601-01-01 UTC, which is what the protocol has.

CREATE TABLE IF NOT EXISTS taktwerk_node (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The NodeId with its namespace's URI, such as nsu=urn:plant;s=Boiler.
    key text NOT NULL UNIQUE,
    -- The server that records it at the moment.
    recorded_by text,
    -- The server that recorded it last. It decides how long values are kept.
    owner text
);

-- Tables of earlier versions have no owner. Values of Variables without owner are kept.
ALTER TABLE taktwerk_node ADD COLUMN IF NOT EXISTS owner text;
UPDATE taktwerk_node SET owner = recorded_by WHERE owner IS NULL AND recorded_by IS NOT NULL;

CREATE TABLE IF NOT EXISTS taktwerk_value (
    node integer NOT NULL,
    time timestamptz NOT NULL,
    ticks bigint NOT NULL,
    server_ticks bigint NOT NULL,
    -- The StatusCode; 0 is Good.
    status bigint NOT NULL,
    -- The built-in type (Part 6 table 1); 0 without a value, 255 for what stands in "other" alone.
    type smallint NOT NULL,
    -- Numbers; booleans are 0 and 1.
    value double precision,
    -- The binary encoding of what is no number, or does not fit a double.
    other bytea,
    PRIMARY KEY (node, time, ticks)
);

CREATE TABLE IF NOT EXISTS taktwerk_modified (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node integer NOT NULL,
    ticks bigint NOT NULL,
    server_ticks bigint NOT NULL,
    status bigint NOT NULL,
    type smallint NOT NULL,
    value double precision,
    other bytea,
    changed_at bigint NOT NULL,
    -- HistoryUpdateType: 1 insert, 2 replace, 3 update, 4 delete.
    change integer NOT NULL,
    changed_by text NOT NULL
);
CREATE INDEX IF NOT EXISTS taktwerk_modified_node ON taktwerk_modified (node, ticks, id);

CREATE TABLE IF NOT EXISTS taktwerk_annotation (
    node integer NOT NULL,
    ticks bigint NOT NULL,
    user_name text NOT NULL,
    annotated_at bigint NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (node, ticks, user_name, annotated_at)
);

-- One row for each event. What a query may want to show stands in columns of its own; "data" has all fields.
CREATE TABLE IF NOT EXISTS taktwerk_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The ApplicationUri of the server, and the Object that keeps the event: i=2253 is the Server Object.
    server text NOT NULL,
    node text NOT NULL,
    time timestamptz NOT NULL,
    ticks bigint NOT NULL,
    event_id bytea NOT NULL,
    -- SourceName, Severity and Message, if the event has them.
    source text,
    severity integer,
    message text,
    -- The binary encoding of all fields with their browse paths.
    data bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS taktwerk_event_time ON taktwerk_event (server, node, ticks, id);
CREATE INDEX IF NOT EXISTS taktwerk_event_event_id ON taktwerk_event (server, node, event_id);
