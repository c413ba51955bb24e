# SPDX-License-Identifier: MIT OR Apache-2.0
"""Steps through the MonitoredItem and Subscription services."""

import asyncio

from asyncua import Client, ua
from asyncua.ua.ua_binary import struct_from_binary
from steps import Steps, status_name

COUNTER, ABSOLUTE, PERCENT, PLAIN, CLOCK, ANSWER, UNKNOWN = range(7)


class Feed:
    """Counts notifications by client handle."""

    def __init__(self):
        self.count = [0] * 1000
        self.last = {}

    def datachange_notification(self, node, value, data):
        handle = data.subscription_data.client_handle
        self.count[handle] += 1
        self.last[handle] = value

    def status_change_notification(self, status):
        self.last["status"] = status

    async def received(self, handle, seconds, settle=0.4):
        await asyncio.sleep(settle)
        before = self.count[handle]
        await asyncio.sleep(seconds)
        return self.count[handle] - before


class SubscriptionSteps(Steps):
    async def subscriptions(self):
        feed = Feed()
        sub = await self.client.create_subscription(100, feed)
        self.check("create-subscription", sub.subscription_id is not None, sub.subscription_id)
        ids = await self.create_items(sub)
        await self.notifications(feed)
        session, sid = self.session, sub.subscription_id

        async def mode(item, m):
            params = ua.SetMonitoringModeParameters()
            params.SubscriptionId, params.MonitoringMode = sid, m
            params.MonitoredItemIds = [item]
            (status,) = await session.set_monitoring_mode(params)
            return status

        M = ua.MonitoringMode
        for name, m, fits in (("disabled", M.Disabled, lambda n: n == 0),
                              ("sampling", M.Sampling, lambda n: n == 0),
                              ("reporting", M.Reporting, lambda n: n >= 3)):  # fmt: skip
            status = await mode(ids[COUNTER], m)
            n = await feed.received(COUNTER, 0.6)
            self.check(f"set-monitoring-mode {name}", status.is_good() and fits(n),
                       f"{status_name(status)}, {n} notifications")  # fmt: skip
        await self.expect_error("set-monitoring-mode of an unknown item",
                                mode(4000000000, M.Reporting),
                                ua.StatusCodes.BadMonitoredItemIdInvalid)  # fmt: skip

        await self.run(self.modify_items, sid, ids, feed)
        await self.run(self.triggering, sid, ids, feed, mode)
        await self.run(self.modify_subscription, sid, feed)
        await self.expect_error("republish unavailable", session.republish(sid, 3000000000),
                                ua.StatusCodes.BadMessageNotAvailable)  # fmt: skip
        server = ua.NodeId(ua.ObjectIds.Server)
        arg = ua.Variant(sid, ua.VariantType.UInt32)
        r = await self.call(ua.NodeId(ua.ObjectIds.Server_GetMonitoredItems), arg, obj=server)
        n = len(r.OutputArguments[0].Value) if len(r.OutputArguments) == 2 else 0
        self.check("get-monitored-items", r.StatusCode.is_good() and n == len(ids) - 1, r)
        before = feed.count[ANSWER]
        r = await self.call(ua.NodeId(ua.ObjectIds.Server_ResendData), arg, obj=server)
        await asyncio.sleep(0.7)
        self.check("resend-data", r.StatusCode.is_good() and feed.count[ANSWER] > before, r)
        await self.run(self.transfer)

        params = ua.DeleteMonitoredItemsParameters()
        params.SubscriptionId = sid
        params.MonitoredItemIds = [ids[CLOCK], ids[ANSWER], 4000000000]
        codes = [s.value for s in await session.delete_monitored_items(params)]
        ok = codes == [0, 0, ua.StatusCodes.BadMonitoredItemIdInvalid]
        n = await feed.received(CLOCK, 0.5)
        self.check("delete-monitored-items", ok and n == 0, f"{codes}, {n} notifications after")
        codes = [s.value for s in await session.delete_subscriptions([sid, 4000000000])]
        ok = codes == [0, ua.StatusCodes.BadSubscriptionIdInvalid]
        self.check("delete-subscriptions", ok, codes)

    async def create_items(self, sub):
        def item(node_id, handle, sampling, queue, deadband=None, trigger=1):
            params = ua.MonitoringParameters()
            params.ClientHandle = handle
            params.SamplingInterval = sampling
            params.QueueSize = queue
            params.DiscardOldest = True
            if deadband:
                f = ua.DataChangeFilter()
                f.Trigger = ua.DataChangeTrigger(trigger)
                f.DeadbandType, f.DeadbandValue = deadband
                params.Filter = f
            r = ua.MonitoredItemCreateRequest()
            r.ItemToMonitor.NodeId = node_id
            r.ItemToMonitor.AttributeId = ua.AttributeIds.Value
            r.MonitoringMode = ua.MonitoringMode.Reporting
            r.RequestedParameters = params
            return r

        D = ua.DeadbandType
        clock = ua.NodeId(ua.ObjectIds.Server_ServerStatus_CurrentTime)
        requests = [
            item(self.id("counter"), COUNTER, 100.0, 10),
            item(self.id("analog"), ABSOLUTE, 50.0, 1, (D.Absolute, 5.0)),
            item(self.id("analog"), PERCENT, 50.0, 1, (D.Percent, 10.0)),
            item(self.id("scalar/Double"), PLAIN, 50.0, 5),
            item(clock, CLOCK, 100.0, 1),
            item(self.id("the.answer"), ANSWER, 100.0, 1, (D.None_, 0.0), 2),
            item(self.id("no such node"), UNKNOWN, 100.0, 1),
        ]
        got = await sub.create_monitored_items(requests)
        self.check("create-monitored-items", len(got) == len(requests), len(got))
        for name, handle in (
            ("item counter", COUNTER), ("item absolute deadband", ABSOLUTE),
            ("item percent deadband", PERCENT), ("item plain", PLAIN),
            ("item server time", CLOCK), ("item timestamp trigger", ANSWER),
        ):  # fmt: skip
            self.check(name, isinstance(got[handle], int), got[handle])
        last = got[UNKNOWN]
        ok = not isinstance(last, int) and last.value == ua.StatusCodes.BadNodeIdUnknown
        self.check("item of an unknown node", ok, last)
        return [i if isinstance(i, int) else 0 for i in got]

    async def set_double(self, ident, value):
        await self.write(self.id(ident), ua.Variant(value, ua.VariantType.Double))

    async def notifications(self, feed):
        await asyncio.sleep(1)
        missing = [h for h in range(UNKNOWN) if not feed.count[h]]
        self.check("initial-values", not missing, f"missing: {missing}")
        n = await feed.received(COUNTER, 1.0, settle=0)
        self.check("counter-notifications", 7 <= n <= 13, f"{n} in 1 s")
        # 50 -> 52 is inside both deadbands, 61 outside both, 67 outside the absolute one only.
        for value, steps in (
            (52.0, [("deadband inside", 0, 0)]),
            (61.0, [("deadband absolute", 1, None), ("deadband percent", None, 1)]),
            (67.0, [("deadband between", 1, 0)]),
        ):
            a, p = feed.count[ABSOLUTE], feed.count[PERCENT]
            await self.set_double("analog", value)
            await asyncio.sleep(0.5)
            a, p = feed.count[ABSOLUTE] - a, feed.count[PERCENT] - p
            for name, want_a, want_p in steps:
                ok = want_a in (None, a) and want_p in (None, p)
                self.check(name, ok, f"absolute +{a}, percent +{p}")
        await self.set_double("analog", 50.0)
        await self.set_double("scalar/Double", 1234.5)
        await asyncio.sleep(0.5)
        self.check("change-notification", feed.last.get(PLAIN) == 1234.5, feed.last.get(PLAIN))

    async def modify_items(self, sid, ids, feed):
        request = ua.MonitoredItemModifyRequest()
        request.MonitoredItemId = ids[COUNTER]
        p = request.RequestedParameters
        p.ClientHandle, p.SamplingInterval, p.QueueSize, p.DiscardOldest = COUNTER, 250.0, 3, True
        params = ua.ModifyMonitoredItemsParameters()
        params.SubscriptionId, params.ItemsToModify = sid, [request]
        params.TimestampsToReturn = ua.TimestampsToReturn.Both
        (r,) = await self.session.modify_monitored_items(params)
        n = await feed.received(COUNTER, 1.0)
        ok = r.StatusCode.is_good() and r.RevisedQueueSize == 3 and 2 <= n <= 6
        self.check("modify-monitored-items", ok, f"{r}, then {n} notifications in 1 s")

    async def triggering(self, sid, ids, feed, mode):
        async def link(add):
            request = ua.SetTriggeringRequest()
            p = request.Parameters
            p.SubscriptionId, p.TriggeringItemId = sid, ids[COUNTER]
            p.LinksToAdd, p.LinksToRemove = ([ids[PLAIN]], []) if add else ([], [ids[PLAIN]])
            data = await self.session._send_request(request)
            response = struct_from_binary(ua.SetTriggeringResponse, data)
            response.ResponseHeader.ServiceResult.check()
            results = response.Parameters.AddResults if add else response.Parameters.RemoveResults
            return results[0]

        try:
            await mode(ids[PLAIN], ua.MonitoringMode.Sampling)
            await asyncio.sleep(0.3)
            before = feed.count[PLAIN]
            await self.set_double("scalar/Double", 7.25)
            await asyncio.sleep(0.6)
            early = feed.count[PLAIN] - before
            status = await link(True)
            await self.set_double("scalar/Double", 7.75)
            await asyncio.sleep(1.2)
            ok = status.is_good() and early == 0 and feed.last.get(PLAIN) == 7.75
            self.check("set-triggering", ok, f"{status_name(status)}, {early} before the link, "
                       f"last {feed.last.get(PLAIN)}")  # fmt: skip
            status = await link(False)
            await self.set_double("scalar/Double", 8.25)
            n = await feed.received(PLAIN, 0.4)
            ok = status.is_good() and n == 0
            self.check("set-triggering remove", ok, f"{status_name(status)}, {n} after")
        finally:
            await mode(ids[PLAIN], ua.MonitoringMode.Reporting)
            await self.set_double("scalar/Double", 2.718281828459045)

    async def modify_subscription(self, sid, feed):
        params = ua.ModifySubscriptionParameters()
        params.SubscriptionId, params.RequestedPublishingInterval = sid, 200.0
        params.RequestedLifetimeCount, params.RequestedMaxKeepAliveCount = 600, 3
        r = await self.session.update_subscription(params)
        self.check("modify-subscription", r.RevisedPublishingInterval == 200.0, r)

        async def publishing(on):
            params = ua.SetPublishingModeParameters()
            params.PublishingEnabled, params.SubscriptionIds = on, [sid]
            (status,) = await self.session.set_publishing_mode(params)
            return status

        status = await publishing(False)
        n = await feed.received(COUNTER, 1.0)
        self.check("set-publishing-mode off", status.is_good() and n == 0, f"{n} notifications")
        status = await publishing(True)
        n = await feed.received(COUNTER, 1.0)
        self.check("set-publishing-mode on", status.is_good() and n > 0, f"{n} notifications")

    async def transfer(self):
        first = ""
        for user in (None, "user1"):
            status, values = await self.transfer_as(user)
            if status.is_good():
                break
            first += f"{status_name(status)} as {user or 'anonymous'}, then "
        ok = status.is_good() and values >= 2
        detail = f"{first}{status_name(status)} as {user or 'anonymous'}, {values} values after"
        self.check("transfer-subscriptions", ok, detail)

    async def transfer_as(self, user):
        clients = [Client(self.url), Client(self.url)]
        for c in clients:
            if user:
                c.set_user(user)
                c.set_password("password")
            await c.connect()
        try:
            feed = Feed()
            sub = await clients[0].create_subscription(100, feed)
            await sub.subscribe_data_change(clients[0].get_node(self.id("counter")))
            await asyncio.sleep(0.5)
            params = ua.TransferSubscriptionsParameters()
            params.SubscriptionIds, params.SendInitialValues = [sub.subscription_id], True
            target = clients[1].uaclient.session
            (result,) = await target.transfer_subscriptions(params)
            values = 0

            def arrived(message):
                nonlocal values
                for n in message.NotificationMessage.NotificationData or []:
                    values += len(getattr(n, "MonitoredItems", []))

            if result.StatusCode.is_good():
                target._subscription_callbacks[sub.subscription_id] = arrived
                target.ensure_publish_loop()
                await asyncio.sleep(1)
            return result.StatusCode, values
        finally:
            for c in clients:
                await c.disconnect()
