// SPDX-License-Identifier: MIT OR Apache-2.0
//
// History of a Taktwerk server, read and written by node-opcua.
"use strict";

const { AggregateFunction, FilterOperator, LiteralOperand, TimestampsToReturn, constructEventFilter } = require("node-opcua-client");
const { HistoryReadRequest, ReadAtTimeDetails, ReadEventDetails, ReadRawModifiedDetails } = require("node-opcua-service-history");
const { DeleteAtTimeDetails, DeleteRawModifiedDetails, HistoryUpdateRequest, PerformUpdateType, UpdateDataDetails } = require("node-opcua-types");
const { DataType } = require("node-opcua-variant");
const { pause, send } = require("./checks.js");

const MINUTE = 60000;

async function plant(session, name) {
    const index = (await session.readNamespaceArray()).indexOf("urn:taktwerk:demo-plant");
    return `ns=${index};s=Plant/${name}`;
}

async function read(session, node, historyReadDetails, continuationPoint) {
    const request = new HistoryReadRequest({
        historyReadDetails,
        timestampsToReturn: TimestampsToReturn.Both,
        releaseContinuationPoints: false,
        nodesToRead: [{ nodeId: node, continuationPoint }],
    });
    return (await session.historyRead(request)).results[0];
}

const values = (result) => result.historyData?.dataValues ?? [];

async function history(session, checks) {
    const node = await plant(session, "Boiler/Level");
    const end = new Date(Math.floor(Date.now() / MINUTE) * MINUTE);
    const start = new Date(end.getTime() - 30 * MINUTE);
    // Its default are bounds.
    const raw = await session.readHistoryValue(node, start, end, { returnBounds: false });
    checks.status("raw values", raw.statusCode, "Good");
    const all = values(raw);
    const times = all.map((it) => it.sourceTimestamp.getTime());
    checks.check("in order", all.length > 100 && times.every((it, at) => at === 0 || it >= times[at - 1]), all.length);
    const back = await read(session, node, new ReadRawModifiedDetails({ startTime: end, endTime: start, numValuesPerNode: 5 }));
    const reversed = values(back).map((it) => it.sourceTimestamp.getTime());
    const newest = times.filter((it) => it <= end.getTime()).slice(-5).reverse();
    checks.check("backwards", JSON.stringify(reversed) === JSON.stringify(newest), `${reversed} ${newest}`);
    const first = await read(session, node, new ReadRawModifiedDetails({ startTime: start, endTime: end, numValuesPerNode: 7 }));
    checks.check("seven of them", values(first).length === 7, values(first).length);
    checks.check("with a continuation point", first.continuationPoint?.length > 0);
    const details = new ReadRawModifiedDetails({ startTime: start, endTime: end, numValuesPerNode: 7 });
    const second = await read(session, node, details, first.continuationPoint);
    checks.check("and the next seven", values(second)[0]?.sourceTimestamp.getTime() === times[7], values(second)[0]);
    const bounded = await session.readHistoryValue(node, new Date(times[3] + 1), new Date(times[5] + 1), { returnBounds: true });
    checks.check("with bounds", values(bounded)[0]?.sourceTimestamp.getTime() === times[3], values(bounded)[0]);

    const numbers = all.filter((it) => it.sourceTimestamp < end && it.statusCode.isGood()).map((it) => it.value.value);
    const processed = async (aggregate, interval) => session.readAggregateValue({ nodeId: node }, start, end, aggregate, interval);
    const count = await processed(AggregateFunction.Count, 0);
    checks.check("Count", values(count)[0]?.value.value === numbers.length, `${values(count)[0]} ${numbers.length}`);
    const mean = await processed(AggregateFunction.Average, 0);
    const expected = numbers.reduce((sum, it) => sum + it, 0) / numbers.length;
    checks.check("Average", Math.abs(values(mean)[0]?.value.value - expected) < 1e-9, `${values(mean)[0]} ${expected}`);
    const most = await processed(AggregateFunction.Maximum, 0);
    checks.check("Maximum", values(most)[0]?.value.value === Math.max(...numbers));
    const minutes = await processed(AggregateFunction.TimeAverage, MINUTE);
    checks.check("TimeAverage per minute", values(minutes).length === 30, values(minutes).length);
    const exact = await read(session, node, new ReadAtTimeDetails({ reqTimes: all.slice(10, 13).map((it) => it.sourceTimestamp) }));
    const near = values(exact).map((it, at) => Math.abs(it.value.value - all[10 + at].value.value));
    // Its times have a resolution of a millisecond.
    checks.check("at times", near.length === 3 && Math.max(...near) < 0.1, near);
    const middle = new Date((times[20] + times[21]) / 2);
    const between = values(await read(session, node, new ReadAtTimeDetails({ reqTimes: [middle] })))[0];
    checks.check("between values", between?.statusCode.toString().includes("HistorianInterpolated"), between?.statusCode);
    const none = await session.readHistoryValue("i=85", start, end);
    checks.check("a node without history", none.statusCode.isNotGood(), none.statusCode);
    await storedEvents(session, checks);
}

async function storedEvents(session, checks) {
    const fields = ["EventId", "Time", "Severity", "Message"];
    const ask = async (where) => {
        const filter = constructEventFilter(fields, where);
        const end = new Date();
        const startTime = new Date(end.getTime() - 60 * MINUTE);
        const result = await read(session, "i=2253", new ReadEventDetails({ startTime, endTime: end, numValuesPerNode: 0, filter }));
        return { status: result.statusCode, found: result.historyData?.events ?? [] };
    };
    // The alarm of the steps before was recorded; storing takes up to a second.
    await pause(1500);
    const { status, found } = await ask();
    checks.status("stored events", status, "Good");
    const times = found.map((it) => it.eventFields[1].value.getTime());
    checks.check("in order", found.length >= 2 && times.every((it, at) => at === 0 || it >= times[at - 1]), found.length);
    const field = constructEventFilter(["Severity"]).selectClauses[0];
    const severe = await ask({
        elements: [
            {
                filterOperator: FilterOperator.GreaterThanOrEqual,
                filterOperands: [field, new LiteralOperand({ value: { dataType: DataType.UInt16, value: 500 } })],
            },
        ],
    });
    const right = found.filter((it) => it.eventFields[2].value >= 500).length;
    checks.check("with a where clause", severe.found.length >= right && severe.found.every((it) => it.eventFields[2].value >= 500), severe.found.length);
}

async function update(session, checks) {
    const node = await plant(session, "TemperatureSetpoint");
    const start = new Date(Date.UTC(2020, 0, 1));
    const at = (second) => new Date(start.getTime() + second * 1000);
    const value = (second, number) => ({
        value: { dataType: DataType.Double, value: number },
        sourceTimestamp: at(second),
        serverTimestamp: at(second),
    });
    const change = async (details) => {
        const response = await send(session, new HistoryUpdateRequest({ historyUpdateDetails: [details] }));
        return response.results[0];
    };
    const put = (performInsertReplace, updateValues) => change(new UpdateDataDetails({ nodeId: node, performInsertReplace, updateValues }));
    const names = (result) => [result.statusCode, ...(result.operationResults ?? [])].map((it) => it.name).join(" ");
    const is = (name, result, expected) => checks.check(name, names(result) === expected, names(result));
    const stored = async (isReadModified = false) =>
        read(session, node, new ReadRawModifiedDetails({ isReadModified, startTime: at(0), endTime: at(100), numValuesPerNode: 0 }));
    const numbers = async () => values(await stored()).map((it) => it.value.value).join(" ");

    is("values are inserted", await put(PerformUpdateType.Insert, [value(0, 1), value(1, 2), value(2, 3)]), "Good GoodEntryInserted GoodEntryInserted GoodEntryInserted");
    checks.check("and read", (await numbers()) === "1 2 3", await numbers());
    is("one that exists is not inserted", await put(PerformUpdateType.Insert, [value(1, 5)]), "Good BadEntryExists");
    is("but replaced", await put(PerformUpdateType.Replace, [value(1, 5), value(50, 5)]), "Good GoodEntryReplaced BadNoEntryExists");
    is("or updated", await put(PerformUpdateType.Update, [value(2, 6), value(3, 7)]), "Good GoodEntryReplaced GoodEntryInserted");
    checks.check("these are read", (await numbers()) === "1 5 6 7", await numbers());
    const modified = await stored(true);
    const kinds = modified.historyData?.modificationInfos?.length;
    checks.check("the old ones as modified", kinds >= 2 && values(modified).length === kinds, kinds);
    is("one is deleted", await change(new DeleteAtTimeDetails({ nodeId: node, reqTimes: [at(0), at(60)] })), "Good Good BadNoEntryExists");
    const range = new DeleteRawModifiedDetails({ nodeId: node, isDeleteModified: false, startTime: at(2), endTime: at(100) });
    checks.status("a range is deleted", (await change(range)).statusCode, "Good");
    checks.check("one is left", (await numbers()) === "5", await numbers());
    const other = await plant(session, "Boiler/Level");
    const refused = await change(new UpdateDataDetails({ nodeId: other, performInsertReplace: PerformUpdateType.Insert, updateValues: [value(0, 1)] }));
    checks.check("a history that is not writable is not changed", refused.statusCode.isNotGood() || refused.operationResults.every((it) => it.isNotGood()), names(refused));
}

module.exports = { history, update };
