#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""asyncua reads a state machine of the demo plant, causes transitions, and gets their events.

    machines.py URL     a server with the demo plant

Prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.
"""

import asyncio
import sys

from asyncua import Client, ua
from nodes import Checks


class Events(asyncio.Queue):
    def event_notification(self, event):
        self.put_nowait(event)

    def status_change_notification(self, status):
        pass


async def main(url):
    checks = Checks()
    async with Client(url) as client:
        plant = await client.get_namespace_index("urn:taktwerk:demo-plant")
        hatch = await client.nodes.objects.get_child([f"{plant}:Plant", f"{plant}:Hatch"])
        kind = client.get_node(await hatch.read_type_definition())
        base = [node.nodeid for node in await kind.get_referenced_nodes(ua.ObjectIds.HasSubtype, ua.BrowseDirection.Inverse)]
        checks("its type is a state machine", base == [ua.NodeId(ua.ObjectIds.FiniteStateMachineType)], str(base))
        states = [await client.get_node(node).read_browse_name() for node in await (await hatch.get_child("0:AvailableStates")).read_value()]
        names = [name.Name for name in states]
        checks("it has states", names == ["Closed", "Opened", "Locked"], str(names))
        transition = await kind.get_child(f"{plant}:ClosedToOpened")
        cause = await transition.get_referenced_nodes(ua.ObjectIds.HasCause)
        checks("a transition has a cause", cause == [await kind.get_child(f"{plant}:Open")], str(cause))
        methods = {name: await hatch.get_child(f"{plant}:{name}") for name in ("Open", "Close")}

        async def executable(name):
            return (await methods[name].read_attribute(ua.AttributeIds.Executable)).Value.Value

        events = Events()
        subscription = await client.create_subscription(50, events)
        await subscription.subscribe_events(hatch, ua.ObjectIds.TransitionEventType)
        checks("Open can be called, Close cannot", (await executable("Open"), await executable("Close")) == (True, False))
        await checks.refuses(
            "a method without effect in this state is refused",
            hatch.call_method(methods["Close"]),
            ua.uaerrors.BadNotExecutable,
        )
        await hatch.call_method(methods["Open"])
        state = (await (await hatch.get_child("0:CurrentState")).read_value()).Text
        last = await (await hatch.get_child(["0:LastTransition", "0:Id"])).read_value()
        checks("the state has changed", (state, last) == ("Opened", transition.nodeid), f"{state} {last}")
        checks("Close can be called now", (await executable("Open"), await executable("Close")) == (False, True))
        event = await asyncio.wait_for(events.get(), 20)
        told = (event.FromState.Text, event.ToState.Text, event.Transition.Text)
        checks("an event reports it", told == ("Closed", "Opened", "ClosedToOpened"), str(told))
        await hatch.call_method(methods["Close"])
        event = await asyncio.wait_for(events.get(), 20)
        checks("and of the next one", event.ToState.Text == "Closed", event.ToState.Text)
    print(f"count: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
