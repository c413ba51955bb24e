#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""History and events against asyncua, both ways.

    history.py client URL      reads and checks the history of values and events of the demo plant of a Taktwerk server
    history.py serve           a server with a variable that it historizes; prints READY URL and the NodeId
                               The values are 0, 1, 2 … 199 and one second apart. The Object Plant raises events, twenty
                               per second, with the severities 300 and 700 in turn; every tenth one is an alarm.

The client prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.
"""

import asyncio
import datetime
import sys

from asyncua import Client, Server, ua
from asyncua.server.history import HistoryDict

LEVEL = "Plant/Boiler/Level"
HOUR = datetime.timedelta(hours=1)


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, ok, detail=""):
        self.passed += bool(ok)
        self.failed += not ok
        print(f"{'ok    ' if ok else 'FAILED'} {name} {detail}")


async def processed(client, node, start, end, interval, aggregate):
    details = ua.ReadProcessedDetails()
    details.StartTime, details.EndTime = start, end
    details.ProcessingInterval = interval
    details.AggregateType = [ua.NodeId(aggregate)]
    details.AggregateConfiguration = ua.AggregateConfiguration(UseServerCapabilitiesDefaults=True)
    return await read(client, node, details)


async def read(client, node, details):
    item = ua.HistoryReadValueId()
    item.NodeId = node.nodeid
    params = ua.HistoryReadParameters()
    params.HistoryReadDetails = details
    params.TimestampsToReturn = ua.TimestampsToReturn.Both
    # asyncua's default is True, which asks for no values.
    params.ReleaseContinuationPoints = False
    params.NodesToRead = [item]
    (result,) = await client.uaclient.history_read(params)
    result.StatusCode.check()
    return result.HistoryData.DataValues


def where(operator, *operands):
    """A where clause of one element; fields are named by a str, values are Variants."""
    element = ua.ContentFilterElement()
    element.FilterOperator = operator
    for operand in operands:
        if isinstance(operand, str):
            field = ua.SimpleAttributeOperand()
            field.TypeDefinitionId = ua.NodeId(ua.ObjectIds.BaseEventType)
            field.BrowsePath = [ua.QualifiedName(operand)]
            field.AttributeId = ua.AttributeIds.Value
            element.FilterOperands.append(field)
        else:
            element.FilterOperands.append(ua.LiteralOperand(Value=operand))
    filter = ua.ContentFilter()
    filter.Elements = [element]
    return filter


async def stored(node, start, end, clause):
    """The severities of the stored events that pass a where clause."""
    details = ua.ReadEventDetails()
    details.StartTime, details.EndTime = start, end
    details.Filter.WhereClause = clause
    field = ua.SimpleAttributeOperand()
    field.TypeDefinitionId = ua.NodeId(ua.ObjectIds.BaseEventType)
    field.BrowsePath = [ua.QualifiedName("Severity")]
    field.AttributeId = ua.AttributeIds.Value
    details.Filter.SelectClauses = [field]
    result = await node.history_read_events(details)
    result.StatusCode.check()
    return [event.EventFields[0].Value for event in result.HistoryData.Events]


async def check_events(client, checks):
    server = client.get_node(ua.ObjectIds.Server)
    start = datetime.datetime.now(datetime.timezone.utc) - HOUR
    events = []
    # The demo plant raises its first events soon after its start. Newer ones may be stored between two queries.
    for _ in range(80):
        end = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=5)
        events = await server.read_event_history(start, end)
        if len(events) >= 2:
            break
        await asyncio.sleep(0.5)
    times = [event.Time for event in events]
    checks("stored events", len(events) >= 2 and times == sorted(times), f"{len(events)} events")
    if not events:
        return
    ids = {event.EventId for event in events}
    checks("each with an EventId of its own", len(ids) == len(events), str(len(ids)))
    newest = await server.read_event_history(None, end, 1)
    checks("the newest one", [event.EventId for event in newest] == [events[-1].EventId])
    severities = [event.Severity for event in events]
    middle = sorted(severities)[len(severities) // 2]
    operator = ua.FilterOperator.GreaterThanOrEqual
    least = ua.Variant(middle, ua.VariantType.UInt16)
    found = await stored(server, start, end, where(operator, "Severity", least))
    expected = [severity for severity in severities if severity >= middle]
    checks("a filter by severity", found == expected, f"{len(found)} of {len(severities)}")
    name = events[0].SourceName
    found = await stored(server, start, end, where(ua.FilterOperator.Equals, "SourceName", ua.Variant(name)))
    expected = [event.Severity for event in events if event.SourceName == name]
    checks("a filter by source", found == expected, f"{len(found)} of {name}")
    kind = ua.Variant(ua.NodeId(ua.ObjectIds.AuditEventType))
    found = await stored(server, start, end, where(ua.FilterOperator.OfType, kind))
    checks("no audit events for everybody", found == [], str(found))


async def check(url):
    checks = Checks()
    async with Client(url) as client:
        index = await client.get_namespace_index("urn:taktwerk:demo-plant")
        node = client.get_node(ua.NodeId(LEVEL, index))
        # Newer events may be stored between the queries below.
        end = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=5)
        start = end - HOUR / 2
        values = await node.read_raw_history(start, end, 0)
        times = [value.SourceTimestamp for value in values]
        checks("raw", len(values) > 100 and times == sorted(times), f"{len(values)} values")
        last = await node.read_raw_history(None, end, 5)
        stamps = [value.SourceTimestamp for value in last]
        checks("the last ones", len(last) == 5 and stamps == sorted(stamps, reverse=True), str(len(last)))
        first = await node.read_raw_history(start, None, 7)
        checks("the first ones", [value.Value for value in first] == [value.Value for value in values[:7]])
        # asyncua requests bounds: the value before the start, and Bad_BoundNotFound if there is none after the end.
        inner = [value for value in values if start <= value.SourceTimestamp < end and value.StatusCode.is_good()]
        numbers = [value.Value.Value for value in inner]
        ids = ua.ObjectIds
        (count,) = await processed(client, node, start, end, 0.0, ids.AggregateFunction_Count)
        checks("Count", count.Value.Value == len(numbers), f"{count.Value.Value} of {len(numbers)}")
        (mean,) = await processed(client, node, start, end, 0.0, ids.AggregateFunction_Average)
        expected = sum(numbers) / len(numbers)
        checks("Average", abs(mean.Value.Value - expected) < 1e-9, f"{mean.Value.Value} and {expected}")
        (most,) = await processed(client, node, start, end, 0.0, ids.AggregateFunction_Maximum)
        checks("Maximum", most.Value.Value == max(numbers), str(most.Value.Value))
        minutes = await processed(client, node, start, end, 60_000.0, ids.AggregateFunction_TimeAverage)
        checks("TimeAverage per minute", len(minutes) == 30, str(len(minutes)))
        at = ua.ReadAtTimeDetails()
        at.ReqTimes = [value.SourceTimestamp for value in values[10:13]]
        found = await read(client, node, at)
        # asyncua's times have microsecond resolution, so the requested times are up to 0.9 µs before the values.
        off = [abs(one.Value.Value - value.Value.Value) for one, value in zip(found, values[10:13], strict=True)]
        checks("at times", max(off) < 1e-4, str(off))
        folder = client.get_node(ua.ObjectIds.ObjectsFolder)
        try:
            await folder.read_raw_history(start, end, 1)
            checks("a node without history", False, "was read")
        except ua.UaStatusCodeError as error:
            checks("a node without history", True, type(error).__name__)
        await check_events(client, checks)
    print(f"count: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


async def raise_events(server, plant):
    """For two minutes. asyncua has events of conditions, but no methods of conditions and no ConditionRefresh."""
    plain = await server.get_event_generator(emitting_node=plant)
    alarm = await server.get_event_generator(ua.ObjectIds.OffNormalAlarmType, plant)
    alarm.event.NodeId = ua.NodeId("Plant/Alarm", plant.nodeid.NamespaceIndex)
    alarm.event.ConditionName = "Alarm"
    alarm.event.Retain = True
    setattr(alarm.event, "ActiveState/Id", True)
    setattr(alarm.event, "AckedState/Id", False)
    for number in range(2400):
        generator = alarm if number % 10 == 9 else plain
        generator.event.Severity = 700 if number % 2 else 300
        await generator.trigger(message=f"event {number}")
        await asyncio.sleep(0.05)


async def serve():
    server = Server()
    await server.init()
    server.set_endpoint("opc.tcp://127.0.0.1:0")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    index = await server.register_namespace("urn:asyncua:history")
    variable = await server.nodes.objects.add_variable(ua.NodeId("Ramp", index), "Ramp", 0.0)
    await server.start()
    storage = HistoryDict()
    await storage.init()
    server.iserver.history_manager.set_storage(storage)
    await server.historize_node_data_change(variable, period=None, count=1000)
    start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=10)
    for number in range(200):
        value = ua.DataValue(ua.Variant(float(number), ua.VariantType.Double))
        value.SourceTimestamp = start + datetime.timedelta(seconds=number)
        value.ServerTimestamp = value.SourceTimestamp
        await storage.save_node_value(variable.nodeid, value)
    port = server.bserver._server.sockets[0].getsockname()[1]
    print(f"READY opc.tcp://127.0.0.1:{port} ns={index};s=Ramp", flush=True)
    plant = await server.nodes.objects.add_object(ua.NodeId("Plant", index), "Plant")
    await raise_events(server, plant)


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        sys.exit(asyncio.run(check(sys.argv[2])))
    asyncio.run(serve())
