#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""asyncua reads events of a type from an imported NodeSet: an alarm with an additional field.

    typed_events.py URL     a server with the pumps and the demo plant, as nodes.sh starts it

Prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.
"""

import asyncio
import sys

from asyncua import Client, ua
from nodes import Checks

PUMPS = "urn:example:pumps"
PLANT = "urn:taktwerk:demo-plant"


class Events(asyncio.Queue):
    def event_notification(self, event):
        self.put_nowait(event)

    def status_change_notification(self, status):
        pass


async def main(url):
    checks = Checks()
    async with Client(url) as client:
        pumps = await client.get_namespace_index(PUMPS)
        plant = await client.get_namespace_index(PLANT)
        kind = client.get_node(ua.NodeId(1003, pumps))
        events = Events()
        subscription = await client.create_subscription(50, events)
        # It finds the fields of the type and its supertypes by browsing, and selects them.
        await subscription.subscribe_events(client.nodes.server, kind)
        setpoint = client.get_node(ua.NodeId("Plant/TemperatureSetpoint", plant))
        before = await setpoint.read_value()
        await setpoint.write_value(before + 1.0)
        event = await asyncio.wait_for(events.get(), 20)
        checks("the event has its type", event.EventType == kind.nodeid, str(event.EventType))
        checks("it has the field of the type", getattr(event, "Cause", None) == "by hand", getattr(event, "Cause", "none"))
        checks("and those of the supertypes", event.ConditionName == "Changed", event.ConditionName)
        checks("a field without a value is null", getattr(event, "Operator", 0) is None, str(getattr(event, "Operator", 0)))
        active = getattr(event, "ActiveState/Id", None)
        checks("it is active", active is True, str(active))
        await setpoint.write_value(before)
        event = await asyncio.wait_for(events.get(), 20)
        checks("and inactive again", getattr(event, "ActiveState/Id", None) is False)
        condition = client.get_node(ua.NodeId("Plant/TemperatureSetpoint/Changed", plant))
        cause = await (await condition.get_child(f"{pumps}:Cause")).read_value()
        checks("the instance shows the field", cause == "by hand", cause)
    print(f"count: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
