#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A gateway between asyncua and asyncua.

    mirror.py serve NAME     a server with a plant: values, a method, events, history; prints READY URL
    mirror.py check URL      looks at the plant through the gateway at URL, source `plant`

The check prints a line for each thing it looks at and `count: N passed, M failed`, and ends with 1 if one failed.
"""

import asyncio
import datetime
import sys

from asyncua import Client, Server, ua, uamethod
from asyncua.server.history import HistoryDict

PLANT = "urn:example:asyncua"
GATEWAY = "urn:taktwerk:gateway"
VALUES = 50


@uamethod
def multiply(parent, one, other):
    return one * other


async def serve(name):
    server = Server()
    await server.init()
    server.set_endpoint("opc.tcp://127.0.0.1:0/")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    index = await server.register_namespace(PLANT)
    plant = await server.nodes.objects.add_object(ua.NodeId("Plant", index), ua.QualifiedName("Plant", index))
    boiler = await plant.add_object(ua.NodeId("Boiler", index), ua.QualifiedName("Boiler", index))
    add = boiler.add_variable
    level = await add(ua.NodeId("Level", index), ua.QualifiedName("Level", index), 0.0, ua.VariantType.Double)
    setpoint = await add(ua.NodeId("Setpoint", index), ua.QualifiedName("Setpoint", index), 60.0)
    await setpoint.set_writable()
    await add(ua.NodeId("Name", index), ua.QualifiedName("Name", index), name)
    double = ua.VariantType.Double
    await boiler.add_method(
        ua.NodeId("Multiply", index), ua.QualifiedName("Multiply", index), multiply, [double, double], [double]
    )
    # The Server Object reports all events (Part 3, 4.7); asyncua reports them only at the emitting node.
    events = await server.get_event_generator()
    events.event.SourceNode = boiler.nodeid
    events.event.SourceName = "Boiler"
    async with server:
        storage = HistoryDict()
        await storage.init()
        server.iserver.history_manager.set_storage(storage)
        await server.historize_node_data_change(level, period=None, count=1000)
        # The level of the last seconds.
        begin = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=VALUES)
        for number in range(VALUES):
            value = ua.DataValue(ua.Variant(float(number), double))
            value.SourceTimestamp = value.ServerTimestamp = begin + datetime.timedelta(seconds=number)
            await storage.save_node_value(level.nodeid, value)
        await level.write_value(value)
        port = server.bserver._server.sockets[0].getsockname()[1]
        print(f"READY opc.tcp://127.0.0.1:{port}/", flush=True)
        while True:
            await asyncio.sleep(0.3)
            await events.trigger(message=f"{name} is there")


class Events(list):
    def event_notification(self, event):
        self.append(event)


async def check(url):
    passed = failed = 0

    def told(name, ok, detail=""):
        nonlocal passed, failed
        passed += bool(ok)
        failed += not ok
        print(f"{'ok    ' if ok else 'FAILED'} asyncua through the gateway: {name} {'' if ok else detail}")

    async with Client(url) as client:
        index = await client.get_namespace_index(GATEWAY)

        def node(name):
            return client.get_node(ua.NodeId(f"plant/Boiler{name}", index))

        for _ in range(100):
            try:
                if await node("/Level").read_value() == VALUES - 1:
                    break
            except ua.UaError:
                pass
            await asyncio.sleep(0.2)
        level = await node("/Level").read_value()
        told("a value", level == VALUES - 1, level)
        await node("/Setpoint").write_value(75.0)
        for _ in range(50):
            if await node("/Setpoint").read_value() == 75.0:
                break
            await asyncio.sleep(0.1)
        setpoint = await node("/Setpoint").read_value()
        told("a value that was written", setpoint == 75.0, setpoint)
        product = await node("").call_method(node("/Multiply").nodeid, 6.0, 7.0)
        told("a method", product == 42.0, product)
        now = datetime.datetime.now(datetime.timezone.utc)
        hour = datetime.timedelta(hours=1)
        values = await node("/Level").read_raw_history(now - hour, now + hour, 1000)
        # Bounds have no value. The server's own records follow.
        values = [value.Value.Value for value in values if value.Value.Value is not None]
        told("its history", values[:VALUES] == [float(number) for number in range(VALUES)], values)
        events = Events()
        subscription = await client.create_subscription(100, events)
        await subscription.subscribe_events(node(""))
        for _ in range(100):
            if events:
                break
            await asyncio.sleep(0.1)
        event = events[0] if events else None
        is_right = event and event.SourceNode == node("").nodeid and event.Message.Text.endswith(" is there")
        told("an event from its mirrored source", is_right, event)
    print(f"count: {passed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(sys.argv[2]))
    else:
        sys.exit(min(asyncio.run(check(sys.argv[2])), 1))
