# SPDX-License-Identifier: MIT OR Apache-2.0
"""Events, alarms and conditions: what an operator's client does, on an alarm that is raised by writing its input."""

import asyncio

from asyncua import ua
from steps import Steps

INPUT = "alarms/input"
CONDITION = "alarms/input/LevelAlarm"


class Handler:
    def __init__(self):
        self.events = asyncio.Queue()

    def event_notification(self, event):
        self.events.put_nowait(event)

    def datachange_notification(self, node, value, data):
        pass


class AlarmSteps(Steps):
    def alarm_node(self, name):
        return self.client.get_node(ua.NodeId(name, self.ns))

    async def event(self, handler, wanted):
        """The next matching event; others are skipped."""
        async with asyncio.timeout(10):
            while True:
                event = await handler.events.get()
                if wanted(event):
                    return event

    async def alarms(self):
        namespaces = await self.client.get_namespace_array()
        self.ns = namespaces.index("urn:taktwerk:interop")
        handler = Handler()
        sub = await self.client.create_subscription(100, handler)
        try:
            await self.follow(sub, handler)
            await self.groups()
        finally:
            await self.alarm_node(INPUT).write_value(0.0)
            await sub.delete()

    async def follow(self, sub, handler):
        source, condition = self.alarm_node(INPUT), self.alarm_node(CONDITION)
        # The library selects the fields of the types named here.
        kind = ua.ObjectIds.ExclusiveLevelAlarmType
        await sub.subscribe_alarms_and_conditions(evtypes=kind)
        await source.write_value(85.0)
        raised = await self.event(handler, lambda e: getattr(e, "Retain", False))
        self.check("alarm-raised", "High limit" in raised.Message.Text, raised.Message.Text)
        self.check("alarm-severity", raised.Severity == 500, raised.Severity)
        self.check("alarm-condition-id", raised.NodeId == condition.nodeid, raised.NodeId)
        states = {
            "ActiveState": getattr(raised, "ActiveState/Id"),
            "AckedState": getattr(raised, "AckedState/Id"),
        }
        self.check("alarm-states", states == {"ActiveState": True, "AckedState": False}, states)
        await condition.call_method(
            "0:Acknowledge", raised.EventId, ua.LocalizedText("seen by asyncua")
        )
        acked = await self.event(handler, lambda e: getattr(e, "AckedState/Id", False))
        self.check("alarm-acknowledge", acked.Comment.Text == "seen by asyncua", acked.Comment)
        self.check("alarm-unconfirmed", getattr(acked, "ConfirmedState/Id") is False)
        try:
            await condition.call_method("0:Acknowledge", raised.EventId, ua.LocalizedText(""))
            self.check("alarm-acknowledged-twice", False, "it was accepted")
        except ua.UaStatusCodeError as e:
            expected = ua.StatusCodes.BadConditionBranchAlreadyAcked
            self.check("alarm-acknowledged-twice", e.code == expected, e)
        await self.refresh(sub, handler)
        shelving = await condition.get_child("0:ShelvingState")
        await shelving.call_method("0:TimedShelve", 60000.0)
        shelved = await self.event(handler, lambda e: getattr(e, "SuppressedOrShelved", False))
        state = getattr(shelved, "ShelvingState/CurrentState").Text
        self.check("alarm-shelve", state == "Timed Shelved", state)
        await shelving.call_method("0:Unshelve")
        await self.event(handler, lambda e: getattr(e, "SuppressedOrShelved", True) is False)
        active = await condition.get_child(["0:ActiveState", "0:Id"])
        self.check("alarm-instance", await active.read_value() is True)
        await source.write_value(0.0)
        normal = await self.event(handler, lambda e: getattr(e, "ActiveState/Id", True) is False)
        self.check("alarm-normal", normal.Retain is True, normal.Message.Text)
        await condition.call_method("0:Confirm", normal.EventId, ua.LocalizedText("repaired"))
        done = await self.event(handler, lambda e: getattr(e, "Retain", True) is False)
        self.check("alarm-confirm", getattr(done, "ConfirmedState/Id") is True)

    async def refresh(self, sub, handler):
        kind = self.client.get_node(ua.ObjectIds.ConditionType)
        wanted = ua.Variant(sub.subscription_id, ua.VariantType.UInt32)
        await kind.call_method(ua.NodeId(ua.ObjectIds.ConditionType_ConditionRefresh), wanted)
        start = ua.NodeId(ua.ObjectIds.RefreshStartEventType)
        end = ua.NodeId(ua.ObjectIds.RefreshEndEventType)
        await self.event(handler, lambda e: e.EventType == start)
        told = []
        while (event := await self.event(handler, lambda e: True)).EventType != end:
            told.append(event)
        ours = [e for e in told if e.NodeId == ua.NodeId(CONDITION, self.ns)]
        self.check("alarm-refresh", len(ours) == 1, len(ours))

    async def groups(self):
        """Groups and metrics, while the alarm is active."""
        await self.alarm_node(INPUT).write_value(85.0)
        condition, follower = self.alarm_node(CONDITION), self.alarm_node("alarms/Follower")
        group, suppressing = self.alarm_node("alarms/Group"), self.alarm_node("alarms/Suppressing")
        first = await condition.get_child("0:FirstInGroupFlag")
        suppressed = await follower.get_child(["0:SuppressedState", "0:Id"])
        for name, variable in (("alarm-first-in-group", first), ("alarm-suppressed", suppressed)):
            self.check(name, await self.becomes(variable, True))
        members = await group.get_referenced_nodes(ua.ObjectIds.AlarmGroupMember)
        self.check("alarm-group-members", members == [condition, follower], members)
        found = await condition.get_child("0:FirstInGroup")
        self.check("alarm-group-of-alarm", found == group, found)
        method = ua.NodeId(ua.ObjectIds.AlarmConditionType_GetGroupMemberships)
        groups = await condition.call_method(method)
        self.check("alarm-memberships", groups == [group.nodeid, suppressing.nodeid], groups)
        metrics = self.alarm_node("alarms/AlarmMetrics")
        count = await metrics.get_child("0:AlarmCount")
        self.check("alarm-metrics", await self.becomes(count, lambda value: value >= 2))
        await metrics.call_method("0:Reset")
        self.check("alarm-metrics-reset", await self.becomes(count, 0))

    async def becomes(self, variable, wanted):
        """Whether a variable gets a value within some seconds."""
        is_it = wanted if callable(wanted) else lambda value: value == wanted
        for _ in range(100):
            if is_it(await variable.read_value()):
                return True
            await asyncio.sleep(0.1)
        return False
