"""Reads a Parquet file of the gateway with pyarrow: `python3 read.py FILE` prints tag|value|text|year|status, a line per row."""

import sys

import pyarrow
import pyarrow.parquet

table = pyarrow.parquet.read_table(sys.argv[1])
types = {field.name: field.type for field in table.schema}
assert types["time"] == pyarrow.timestamp("us", tz="UTC"), types
assert types["tag"] == pyarrow.string() and types["text"] == pyarrow.string(), types
assert types["status"] == pyarrow.uint32() and types["value"] == pyarrow.float64(), types
for row in table.to_pylist():
    value, text = ("" if row[name] is None else row[name] for name in ("value", "text"))
    print(row["tag"], value, text, row["time"].year, row["status"], sep="|")
