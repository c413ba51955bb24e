// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Events and alarms of a Taktwerk server, seen by node-opcua. The alarm is raised by writing its input.
"use strict";

const {
    AttributeIds, FilterOperator, LiteralOperand, MonitoringMode, SimpleAttributeOperand, TimestampsToReturn, callConditionRefresh,
    constructEventFilter, findActiveConditions, installAlarmMonitoring, makeNodeId, ofType, uninstallAlarmMonitoring,
} = require("node-opcua-client");
const { ElementOperand } = require("node-opcua-service-filter");
const { DataType, Variant } = require("node-opcua-variant");
const { MonitoredItemCreateRequest, CreateMonitoredItemsRequest } = require("node-opcua-service-subscription");
const { Events, pause, subscribe } = require("./checks.js");

const SERVER = "i=2253";
const LIMIT_ALARM = makeNodeId(9341); // ExclusiveLimitAlarmType
const LEVEL_ALARM = "ns=0;i=9482";
const REFRESH_START = "ns=0;i=2787";
const REFRESH_END = "ns=0;i=2788";
const FIELDS = [
    "EventId", "EventType", "SourceNode", "SourceName", "Time", "ReceiveTime", "Message", "Severity", "Retain",
    "ConditionName", "ConditionClassId", "BranchId", "Comment", "ClientUserId", "EnabledState.Id", "AckedState.Id",
    "ConfirmedState.Id", "ActiveState", "ActiveState.Id", "SuppressedOrShelved", "ShelvingState.CurrentState",
    "LimitState.CurrentState", "HighLimit", "ConditionId",
];

const field = (name) =>
    new SimpleAttributeOperand({ typeDefinitionId: "i=2041", browsePath: [name], attributeId: AttributeIds.Value });
const literal = (dataType, value) => new LiteralOperand({ value: { dataType, value } });
const element = (index) => new ElementOperand({ index });

async function ids(session) {
    const index = (await session.readNamespaceArray()).indexOf("urn:taktwerk:interop");
    return { input: `ns=${index};s=alarms/input`, condition: `ns=${index};s=alarms/input/LevelAlarm` };
}

const set = (session, node, value) =>
    session.write({ nodeId: node, attributeId: AttributeIds.Value, value: { value: { dataType: DataType.Double, value } } });

/** The result of an item with an event filter, which the server may refuse. */
async function filterResult(session, subscription, filter) {
    const response = await session.createMonitoredItems(
        new CreateMonitoredItemsRequest({
            subscriptionId: subscription.subscriptionId,
            timestampsToReturn: TimestampsToReturn.Both,
            itemsToCreate: [
                new MonitoredItemCreateRequest({
                    itemToMonitor: { nodeId: SERVER, attributeId: AttributeIds.EventNotifier },
                    // The library does not know this item and ends if it is reported.
                    monitoringMode: MonitoringMode.Disabled,
                    requestedParameters: { clientHandle: 99, samplingInterval: 0, queueSize: 10, filter },
                }),
            ],
        }),
    );
    return response.results[0];
}

async function events(session, checks) {
    const { input, condition } = await ids(session);
    const subscription = await subscribe(session);
    await set(session, input, 0.0);
    const high = {
        elements: [
            { filterOperator: FilterOperator.And, filterOperands: [element(1), element(2)] },
            { filterOperator: FilterOperator.OfType, filterOperands: [literal(DataType.NodeId, LIMIT_ALARM)] },
            { filterOperator: FilterOperator.And, filterOperands: [element(3), element(4)] },
            {
                filterOperator: FilterOperator.GreaterThanOrEqual,
                filterOperands: [field("Severity"), literal(DataType.UInt16, 500)],
            },
            {
                filterOperator: FilterOperator.Like,
                filterOperands: [field("Message"), literal(DataType.String, "%High%")],
            },
        ],
    };
    const all = await Events.of(subscription, SERVER, FIELDS);
    const chosen = await Events.of(subscription, SERVER, ["EventId", "Message", "Severity", "Retain"], high);
    const none = await Events.of(subscription, SERVER, ["EventId"], {
        elements: [
            {
                filterOperator: FilterOperator.InList,
                filterOperands: [field("Severity"), literal(DataType.UInt16, 1), literal(DataType.UInt16, 2)],
            },
        ],
    });
    await set(session, input, 85.0);
    const event = await all.next((it) => it.ConditionId?.toString() === condition && it.Retain);
    checks.check("an event has its source", event.SourceNode.toString() === input, event.SourceNode);
    checks.check("its EventId and times", event.EventId.length > 0 && event.Time <= event.ReceiveTime, event.Time);
    checks.check("its limit", event.HighLimit === 80.0, event.HighLimit);
    const passed = await chosen.next();
    checks.check("a where clause passes it", passed.EventId.equals(event.EventId) && passed.Severity >= 500, passed.Message);
    await set(session, input, 0.0);
    const normal = await all.next((it) => it.ConditionId?.toString() === condition && it["ActiveState.Id"] === false);
    checks.check("the next event is normal", normal.Message.text.includes("normal"), normal.Message.text);
    await pause(300);
    // Alarms of the demo plant may come too; those of this type are ExclusiveLevelAlarmType.
    const right = all.log.filter(
        (it) => it.EventType.toString() === LEVEL_ALARM && it.Severity >= 500 && it.Message.text.includes("High"),
    );
    // A condition that leaves the filter is reported once more, not retained (Part 9 §5.5.2, SupportsFilteredRetain).
    const [chosenOnes, left] = [true, false].map((retain) => chosen.log.filter((it) => it.Retain === retain));
    const same = right.map((it) => it.EventId).join() === chosenOnes.map((it) => it.EventId).join();
    checks.check("a where clause holds others back", right.length < all.log.length && same, chosen.log.length);
    checks.check("an alarm that leaves it is reported as not retained", left.length === 1 && normal.Retain, left.length);
    checks.check("even all", none.log.length === 0, none.log.length);

    const filter = constructEventFilter(["EventId", "Message"]);
    filter.selectClauses[1].typeDefinitionId = makeNodeId(999999);
    const unknown = await filterResult(session, subscription, filter);
    checks.status("an unknown type of a field does not prevent the item", unknown.statusCode, "Good");
    const status = unknown.filterResult?.selectClauseResults?.[1] ?? { name: "nothing" };
    checks.status("but is reported", status, "BadNodeIdUnknown");
    const wrong = constructEventFilter(["EventId"], {
        elements: [{ filterOperator: FilterOperator.GreaterThan, filterOperands: [field("Severity")] }],
    });
    const refused = await filterResult(session, subscription, wrong);
    checks.status("a where clause with a missing operand is refused", refused.statusCode, "BadEventFilterInvalid");
    const why = refused.filterResult?.whereClauseResult?.elementResults?.[0]?.statusCode;
    checks.status("and the reason given", why ?? { name: "nothing" }, "BadFilterOperandCountMismatch");
    const ofAlarms = await Events.of(subscription, SERVER, ["EventType"], ofType("AlarmConditionType"));
    await set(session, input, 97.0);
    checks.check("ofType finds subtypes", (await ofAlarms.next()).EventType !== null);
    await set(session, input, 0.0);
    await subscription.terminate();
}

async function alarms(session, checks) {
    const { input, condition } = await ids(session);
    const subscription = await subscribe(session);
    await set(session, input, 0.0);
    const mine = (it) => it.ConditionId?.toString() === condition;
    const all = await Events.of(subscription, SERVER, FIELDS);
    await pause(200);
    await set(session, input, 85.0);
    const raised = await all.next((it) => mine(it) && it["ActiveState.Id"]);
    const { text } = raised["LimitState.CurrentState"];
    checks.check("an alarm is raised", raised["AckedState.Id"] === false && text === "High", text);
    checks.status(
        "a comment is added",
        await session.addCommentCondition(condition, raised.EventId, "looked at"),
        "Good",
    );
    const commented = await all.next((it) => mine(it) && it.Comment?.text === "looked at");
    checks.check("and reported", commented["AckedState.Id"] === false);
    checks.status("it is acknowledged", await session.acknowledgeCondition(condition, commented.EventId, "seen"), "Good");
    const seen = await all.next((it) => mine(it) && it["AckedState.Id"]);
    checks.check("with the comment", seen.Comment.text === "seen" && seen["ConfirmedState.Id"] === false, seen.Comment);
    checks.status(
        "only once",
        await session.acknowledgeCondition(condition, seen.EventId, "again"),
        "BadConditionBranchAlreadyAcked",
    );
    checks.status(
        "an unknown EventId is refused",
        await session.confirmCondition(condition, Buffer.from("nothing"), ""),
        "BadEventIdUnknown",
    );
    await shelve(session, checks, condition, all, mine);
    await refresh(session, checks, subscription, all, mine);
    await set(session, input, 0.0);
    const normal = await all.next((it) => mine(it) && it["ActiveState.Id"] === false);
    checks.check("a normal alarm is retained until it is confirmed", normal.Retain);
    checks.status("it is confirmed", await session.confirmCondition(condition, normal.EventId, "repaired"), "Good");
    const done = await all.next((it) => mine(it) && it["ConfirmedState.Id"]);
    checks.check("and not retained any longer", done.Retain === false && done.Comment.text === "repaired");
    await helpers(session, checks, input, condition);
    await subscription.terminate();
}

async function shelve(session, checks, condition, all, mine) {
    const shelving = (await session.translateBrowsePath({
        startingNode: condition,
        relativePath: { elements: [{ referenceTypeId: "i=33", includeSubtypes: true, targetName: "ShelvingState" }] },
    })).targets[0].targetId;
    const call = async (name, inputArguments = []) => {
        const methodId = await session.findMethodId(shelving, name);
        return (await session.call({ objectId: shelving, methodId, inputArguments })).statusCode;
    };
    const minute = [new Variant({ dataType: DataType.Double, value: 60000 })];
    checks.status("it is shelved for a time", await call("TimedShelve", minute), "Good");
    const shelved = await all.next((it) => mine(it) && it.SuppressedOrShelved);
    const state = shelved["ShelvingState.CurrentState"].text;
    checks.check("and says so", state === "Timed Shelved", state);
    const left = await session.read({ nodeId: await unshelveTime(session, shelving), attributeId: AttributeIds.Value });
    checks.check("and how long", left.value.value > 0 && left.value.value <= 60000, left.value);
    checks.status("it is unshelved", await call("Unshelve"), "Good");
    await all.next((it) => mine(it) && it.SuppressedOrShelved === false);
    checks.status("only once", await call("Unshelve"), "BadConditionNotShelved");
    checks.status("it is shelved until it is normal", await call("OneShotShelve"), "Good");
    const once = await all.next((it) => mine(it) && it.SuppressedOrShelved);
    const name = once["ShelvingState.CurrentState"].text;
    checks.check("and says so", name === "One Shot Shelved", name);
    await call("Unshelve");
    await all.next((it) => mine(it) && it.SuppressedOrShelved === false);
}

async function unshelveTime(session, shelving) {
    const found = await session.translateBrowsePath({
        startingNode: shelving,
        relativePath: { elements: [{ referenceTypeId: "i=46", includeSubtypes: true, targetName: "UnshelveTime" }] },
    });
    return found.targets[0].targetId;
}

async function refresh(session, checks, subscription, all, mine) {
    checks.status("a refresh", await callConditionRefresh(session, subscription.subscriptionId), "Good");
    await all.next((it) => it.EventType.toString() === REFRESH_START);
    let told = 0;
    await all.next((it) => {
        if (mine(it)) told += 1;
        return it.EventType.toString() === REFRESH_END;
    });
    checks.check("has the alarm once", told === 1, told);
    checks.status("of an unknown subscription", await callConditionRefresh(session, 4711), "BadSubscriptionIdInvalid");
}

/** The library's own view of alarms. */
async function helpers(session, checks, input, condition) {
    const list = await installAlarmMonitoring(session);
    await set(session, input, 97.0);
    const found = () => list.alarms().find((it) => it.conditionId.toString() === condition && it.getField("activeState")?.id?.value);
    for (let turn = 0; turn < 100 && !found(); turn++) await pause(100);
    const alarm = found();
    checks.check("its list of alarms has it", alarm?.getRetain() === true);
    if (alarm) checks.status("acknowledged from the list", await alarm.acknowledge(session, "from the list"), "Good");
    await uninstallAlarmMonitoring(session);
    const active = await findActiveConditions(session);
    const conditions = active.map((it) => it.conditionId.value.toString());
    checks.check("its search finds it", conditions.includes(condition), conditions);
    await set(session, input, 0.0);
}

module.exports = { alarms, events };
