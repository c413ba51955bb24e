#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""An asyncua client for interop and comparison.

One JSON document on stdout, logs on stderr, exit code 0 when everything held, 1 when not.
The names of the checks are those of o6-client where both make the same check.
"""

import argparse
import asyncio
import importlib.metadata
import json
import logging
import sys
import time

import testnodes as tn
from asyncua import Client, ua
from asyncua.crypto import security_policies
from asyncua.ua.ua_binary import struct_from_binary

FIRST_SIGNAL = 100000
GOOD = ua.StatusCode()


def status_name(code):
    value = code.value if isinstance(code, ua.StatusCode) else code
    name = ua.StatusCode(value).name
    return name if name else hex(value)


def error_code(error):
    """The StatusCode an exception of asyncua stands for, or None."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def status_of(value):
    """The status of a DataValue; on the wire a good one is usually left out."""
    return value.StatusCode if value.StatusCode is not None else GOOD


class Smoke:
    def __init__(self, client, url):
        self.client = client
        self.url = url
        self.session = client.uaclient.session
        self.checks = []
        self.ns = 0

    def check(self, name, ok, detail=""):
        self.checks.append({"name": name, "ok": bool(ok), "detail": str(detail)[:400]})
        if not ok:
            print(f"FAILED {name}: {detail}", file=sys.stderr)
        return ok

    async def run(self, step, *args):
        """A step that raises is a failed check of its own, not the end of the run."""
        try:
            await step(*args)
        except Exception as e:  # noqa: BLE001
            self.check(step.__name__, False, f"raised {type(e).__name__}: {e}")

    def id(self, ident):
        return ua.NodeId(ident, self.ns)

    # --- single operations -------------------------------------------------------------------

    async def read(self, node_id, index_range=None, attribute=ua.AttributeIds.Value,
                   stamps=ua.TimestampsToReturn.Both):  # fmt: skip
        item = ua.ReadValueId()
        item.NodeId = node_id
        item.AttributeId = attribute
        item.IndexRange = index_range
        params = ua.ReadParameters()
        params.TimestampsToReturn = stamps
        params.NodesToRead = [item]
        (value,) = await self.session.read(params)
        return value

    async def write(self, node_id, variant, index_range=None):
        item = ua.WriteValue()
        item.NodeId = node_id
        item.AttributeId = ua.AttributeIds.Value
        item.IndexRange = index_range
        # Without a status: open62541 takes a first explicit Good for a change of status, which
        # passes every deadband.
        item.Value = ua.DataValue(variant, StatusCode=None)
        params = ua.WriteParameters()
        params.NodesToWrite = [item]
        (status,) = await self.session.write(params)
        return status

    async def expect_value(self, ident, want):
        got = await self.read(self.id(ident))
        ok = status_of(got).is_good() and tn.same(got.Value, want)
        self.check(f"read {ident}", ok, got.Value.Value if ok else f"got {got}, want {want}")

    async def expect_error(self, name, pending, *wanted):
        """`pending` gives a StatusCode or a DataValue, or raises one."""
        try:
            got = await pending
            got = status_of(got) if isinstance(got, ua.DataValue) else got
            got = got.value if isinstance(got, ua.StatusCode) else 0
        except Exception as e:  # noqa: BLE001
            got = error_code(e)
            if got is None:
                raise
        self.check(name, got in wanted, f"{status_name(got)}, want {status_name(wanted[0])}")

    # --- steps -------------------------------------------------------------------------------

    async def discovery(self):
        found = await Client(self.url).connect_and_get_server_endpoints()
        names = [f"{e.SecurityPolicyUri.rsplit('#')[-1]}/{e.SecurityMode.value}" for e in found]
        self.check("get-endpoints", found, " ".join(names))
        servers = await Client(self.url).connect_and_find_servers()
        self.check("find-servers", servers, len(servers))

    async def server_object(self):
        status = (await self.read(ua.NodeId(ua.ObjectIds.Server_ServerStatus))).Value.Value
        ok = isinstance(status, ua.ServerStatusDataType) and status.State == ua.ServerState.Running
        self.check("server-status", ok, getattr(status, "State", status))
        uris = await self.client.get_namespace_array()
        found = tn.URI in uris
        self.ns = uris.index(tn.URI) if found else 0
        self.check("namespace-array", found, f"{tn.URI} has index {self.ns}")

    async def browse_all(self):
        seen, order = set(), [ua.NodeId(ua.ObjectIds.RootFolder)]
        seen.add(order[0])
        references = continued = 0
        begin, errors = time.monotonic(), []
        for node_id in order:
            results = await self.browse(node_id, 10)
            while results:
                (r,) = results
                if not r.StatusCode.is_good():
                    errors.append(status_name(r.StatusCode))
                references += len(r.References)
                for ref in r.References:
                    target = ref.NodeId
                    if getattr(target, "ServerIndex", 0):
                        continue
                    plain = ua.NodeId(target.Identifier, target.NamespaceIndex, target.NodeIdType)
                    if plain not in seen:
                        seen.add(plain)
                        order.append(plain)
                results = None
                if r.ContinuationPoint:
                    continued += 1
                    results = await self.browse_next(r.ContinuationPoint, False)
        ms = (time.monotonic() - begin) * 1e3
        self.check(
            "browse-all",
            not errors and len(order) > 100,
            f"{len(order)} nodes, {references} references, {continued} continuations, "
            f"{len(errors)} errors {errors[:3]}, {ms:.0f} ms",
        )
        await self.read_all_attributes(order[:20000])

    async def read_all_attributes(self, nodes):
        allowed = {
            getattr(ua.StatusCodes, n)
            for n in ("BadAttributeIdInvalid", "BadNotReadable", "BadUserAccessDenied",
                      "BadWaitingForInitialData", "BadOutOfService",
                      "BadSecurityModeInsufficient")
        }  # fmt: skip
        good, errors, skipped, begin = 0, [], 0, time.monotonic()
        batches = [nodes[at : at + 20] for at in range(0, len(nodes), 20)]
        for batch in batches:
            params = ua.ReadParameters()
            params.TimestampsToReturn = ua.TimestampsToReturn.Neither
            for node_id in batch:
                for attribute in range(1, 28):
                    item = ua.ReadValueId()
                    item.NodeId = node_id
                    item.AttributeId = ua.AttributeIds(attribute)
                    params.NodesToRead.append(item)
            try:
                values = await self.session.read(params)
            except Exception as e:  # noqa: BLE001
                if len(batch) > 1:
                    batches += [[node_id] for node_id in batch]
                elif await self.undecodable_here(batch[0]):
                    skipped += 1
                else:
                    errors.append(f"{batch[0].to_string()}: {e}")
                continue
            for item, value in zip(params.NodesToRead, values):
                code = status_of(value).value
                if code >> 30 != 2:
                    good += 1
                elif code not in allowed:
                    errors.append(f"{item.NodeId.to_string()}: {status_name(code)}")
        ms = (time.monotonic() - begin) * 1e3
        self.check(
            "read-all-attributes",
            not errors and good > 4 * len(nodes),
            f"{len(nodes)} nodes, {good} attributes read, {len(errors)} errors {errors[:3]}, "
            f"{skipped} skipped, {ms:.0f} ms",
        )

    async def undecodable_here(self, node_id):
        """asyncua 2.1.0 takes the field Encoding of SessionSecurityDiagnosticsDataType for its own
        mask byte, so no server can make it decode that structure."""
        value = await self.read(node_id, attribute=ua.AttributeIds.DataType)
        return value.Value.Value == ua.NodeId(ua.ObjectIds.SessionSecurityDiagnosticsDataType)

    async def browse(self, node_id, most):
        d = ua.BrowseDescription()
        d.NodeId = node_id
        d.BrowseDirection = ua.BrowseDirection.Forward
        d.ReferenceTypeId = ua.NodeId(ua.ObjectIds.References)
        d.IncludeSubtypes = True
        d.NodeClassMask = ua.NodeClass(0)
        d.ResultMask = ua.BrowseResultMask.All
        params = ua.BrowseParameters()
        params.RequestedMaxReferencesPerNode = most
        params.NodesToBrowse = [d]
        return await self.session.browse(params)

    async def browse_next(self, point, release):
        params = ua.BrowseNextParameters()
        params.ReleaseContinuationPoints = release
        params.ContinuationPoints = [point]
        return await self.session.browse_next(params)

    async def browse_steps(self):
        (r,) = await self.browse(self.id("scalar"), 3)
        first, total = len(r.References), len(r.References)
        point = r.ContinuationPoint
        while r.ContinuationPoint:
            (r,) = await self.browse_next(r.ContinuationPoint, False)
            total += len(r.References)
        want = len(tn.TYPES) + 1
        self.check("browse-next", first == 3 and point and total == want, f"{total} of {want}")
        (r,) = await self.browse(self.id("scalar"), 3)
        await self.browse_next(r.ContinuationPoint, True)
        (again,) = await self.browse_next(r.ContinuationPoint, False)
        ok = again.StatusCode.value == ua.StatusCodes.BadContinuationPointInvalid
        self.check("browse-release", ok, status_name(again.StatusCode))

    async def read_values(self):
        for name in tn.TYPES:
            await self.expect_value(f"scalar/{name}", tn.scalar(name, self.ns))
        for name in tn.TYPES:
            await self.expect_value(f"array/{name}", tn.array(name, self.ns))
        await self.expect_value("matrix/Double", tn.matrix())
        await self.expect_value("struct/Range", tn.range_())
        await self.expect_value("analog/EURange", tn.range_())
        await self.expect_value("struct/EUInformation", tn.unit())
        await self.expect_value("the.answer", ua.Variant(43, ua.VariantType.Int32))
        await self.expect_value("readonly", ua.Variant(17, ua.VariantType.Int32))
        await self.expect_value("analog", ua.Variant(50.0, ua.VariantType.Double))
        got = await self.read(self.id("counter"))
        self.check("read counter", got.Value.VariantType == ua.VariantType.UInt32, got.Value.Value)

    async def read_declarations(self):
        A = ua.AttributeIds
        for kind in ("scalar", "array"):
            wrong = []
            for name in tn.TYPES:
                node = self.id(f"{kind}/{name}")
                rank = 1 if kind == "array" else -2 if name == "Variant" else -1
                if (await self.read(node, None, A.DataType)).Value.Value != tn.data_type(name):
                    wrong.append(f"{name} DataType")
                if (await self.read(node, None, A.ValueRank)).Value.Value != rank:
                    wrong.append(f"{name} ValueRank")
                if (await self.read(node, None, A.AccessLevel)).Value.Value & 3 != 3:
                    wrong.append(f"{name} AccessLevel")
            self.check(f"attributes {kind}", not wrong, f"wrong: {wrong}")

    async def read_timestamps(self):
        T = ua.TimestampsToReturn
        for name, which, source, server in (
            ("both", T.Both, True, True), ("source", T.Source, True, False),
            ("server", T.Server, False, True), ("neither", T.Neither, False, False),
        ):  # fmt: skip
            v = await self.read(self.id("counter"), None, ua.AttributeIds.Value, which)
            got = (v.SourceTimestamp is not None, v.ServerTimestamp is not None)
            self.check(f"timestamps {name}", got == (source, server), f"source, server: {got}")

    async def write_and_restore(self, ident, changed, original):
        for value in (changed, original):
            status = await self.write(self.id(ident), value)
            got = await self.read(self.id(ident))
            ok = status.is_good() and tn.same(got.Value, value)
            if not ok:
                self.check(f"write {ident}", False, f"{status_name(status)}, read back {got}")
                await self.write(self.id(ident), original)
                return
        self.check(f"write {ident}", True, f"{changed.Value} and back")

    async def write_values(self):
        for name in tn.TYPES:
            array = tn.array(name, self.ns)
            element = array.Value[1]
            if name != "Variant":
                element = ua.Variant(element, array.VariantType)
            await self.write_and_restore(f"scalar/{name}", element, tn.scalar(name, self.ns))
            flipped = ua.Variant(array.Value[::-1], array.VariantType)
            await self.write_and_restore(f"array/{name}", flipped, array)
        other = ua.Variant([[1.0, 2.0, 3.0], [4.0, -5.5, 6.0]], ua.VariantType.Double)
        await self.write_and_restore("matrix/Double", other, tn.matrix())
        other = ua.Variant(ua.Range(Low=-20.0, High=100.0), ua.VariantType.ExtensionObject)
        await self.write_and_restore("struct/Range", other, tn.range_())
        other = tn.unit()
        other.Value.UnitId = 42
        await self.write_and_restore("struct/EUInformation", other, tn.unit())
        short = ua.Variant([1, 2], ua.VariantType.Int32)
        await self.write_and_restore("array/Int32", short, tn.array("Int32", self.ns))

    async def index_ranges(self):
        for ident, span, want in (
            ("array/Int32", "1:3", [-1, 0, 1]), ("array/Int32", "2", [0]),
            ("matrix/Double", "0:1,1:2", [[2.0, 3.0], [5.0, 6.0]]),
            ("scalar/ByteString", "1:2", bytes([1, 0x7F])),
        ):  # fmt: skip
            got = await self.read(self.id(ident), span)
            ok = status_of(got).is_good() and got.Value.Value == want
            self.check(f"index-range read {ident} [{span}]", ok, f"got {got}, want {want}")
        array = self.id("array/Int32")
        await self.expect_error("index-range read array/Int32 [10:12]", self.read(array, "10:12"),
                                ua.StatusCodes.BadIndexRangeNoData)  # fmt: skip
        await self.expect_error("index-range read array/Int32 [3:1]", self.read(array, "3:1"),
                                ua.StatusCodes.BadIndexRangeInvalid)  # fmt: skip
        original = tn.array("Int32", self.ns)
        status = await self.write(array, ua.Variant([70, 71], ua.VariantType.Int32), "1:2")
        got = (await self.read(array)).Value.Value
        want = [original.Value[0], 70, 71, *original.Value[3:]]
        self.check("index-range write array/Int32 [1:2]", status.is_good() and got == want,
                   f"{status_name(status)}, {got}")  # fmt: skip
        await self.write(array, original)

    async def errors(self):
        C = ua.StatusCodes
        number = ua.Variant(5, ua.VariantType.Int32)
        nowhere, answer = self.id("no such node"), self.id("the.answer")
        await self.expect_error("read unknown node", self.read(nowhere), C.BadNodeIdUnknown)
        await self.expect_error("read value of an object", self.read(self.id("interop")),
                                C.BadAttributeIdInvalid)  # fmt: skip
        await self.expect_error("read writeonly", self.read(self.id("writeonly")),
                                C.BadNotReadable, C.BadUserAccessDenied)  # fmt: skip
        await self.expect_error("write writeonly", self.write(self.id("writeonly"), number), 0)
        await self.expect_error("write readonly", self.write(self.id("readonly"), number),
                                C.BadNotWritable, C.BadUserAccessDenied)  # fmt: skip
        await self.expect_error("write unknown node", self.write(nowhere, number),
                                C.BadNodeIdUnknown)  # fmt: skip
        text = ua.Variant("not a number", ua.VariantType.String)
        target = self.id("scalar/Int32")
        await self.expect_error("write wrong type", self.write(target, text), C.BadTypeMismatch)
        many = ua.Variant([1, 2], ua.VariantType.Int32)
        await self.expect_error("write array to scalar", self.write(target, many),
                                C.BadTypeMismatch)  # fmt: skip
        # A server that took one of these must not fail the next run as well.
        await self.write(target, tn.scalar("Int32", self.ns))
        params = ua.ReadParameters()
        await self.expect_error("read nothing", self.session.read(params), C.BadNothingToDo)
        item = ua.ReadValueId()
        item.NodeId, item.AttributeId = answer, ua.AttributeIds.Value
        params.NodesToRead, params.MaxAge = [item], -1.0
        await self.expect_error("read negative max age", self.session.read(params),
                                C.BadMaxAgeInvalid)  # fmt: skip

    async def call(self, method, *args, obj=None):
        request = ua.CallMethodRequest()
        request.ObjectId = obj or self.id("methods")
        request.MethodId = self.id(method) if isinstance(method, str) else method
        request.InputArguments = list(args)
        (result,) = await self.session.call([request])
        return result

    async def calls(self):
        C, int32, string = ua.StatusCodes, ua.VariantType.Int32, ua.VariantType.String
        a, b, world = ua.Variant(19, int32), ua.Variant(23, int32), ua.Variant("Welt", string)

        def outputs(r):
            return [v.Value for v in r.OutputArguments]

        r = await self.call("method/add", a, b)
        self.check("call add", r.StatusCode.is_good() and outputs(r) == [42], r)
        r = await self.call("method/add", a)
        self.check("call with too few arguments", r.StatusCode.value == C.BadArgumentsMissing, r)
        r = await self.call("method/add", a, world)
        each = [c.value for c in r.InputArgumentResults]
        ok = r.StatusCode.value == C.BadInvalidArgument and each == [0, C.BadTypeMismatch]
        self.check("call with a wrong argument type", ok, r)
        r = await self.call("method/hello", world)
        self.check("call hello", r.StatusCode.is_good() and outputs(r) == ["Hello, Welt!"], r)
        r = await self.call("method/none")
        self.check("call none", r.StatusCode.is_good() and not outputs(r), r)
        r = await self.call("method/fail")
        self.check("call fail", r.StatusCode.value == C.BadInvalidState, r)
        r = await self.call("method/unknown")
        ok = r.StatusCode.value in (C.BadMethodInvalid, C.BadNodeIdUnknown)
        self.check("call an unknown method", ok, r)

    async def paths(self):
        for name, last, want in (
            ("translate-browse-path", "Int32", "scalar/Int32"),
            ("translate-browse-path no match", "nothing here", None),
        ):
            path = ua.BrowsePath()
            path.StartingNode = ua.NodeId(ua.ObjectIds.ObjectsFolder)
            for step in ("interop", "scalar", last):
                e = ua.RelativePathElement()
                e.ReferenceTypeId = ua.NodeId(ua.ObjectIds.HierarchicalReferences)
                e.IsInverse = False
                e.IncludeSubtypes = True
                e.TargetName = ua.QualifiedName(step, self.ns)
                path.RelativePath.Elements.append(e)
            (r,) = await self.session.translate_browsepaths_to_nodeids([path])
            found = [t.TargetId for t in r.Targets]
            if want:
                ok = [(t.Identifier, t.NamespaceIndex) for t in found] == [(want, self.ns)]
            else:
                ok = r.StatusCode.value == ua.StatusCodes.BadNoMatch
            self.check(name, ok, f"{status_name(r.StatusCode)} {found}")

    async def registration(self):
        ids = await self.session.register_nodes([self.id("the.answer"), self.id("scalar/Int32")])
        value = (await self.read(ids[0])).Value.Value
        self.check("register-nodes", len(ids) == 2 and value == 43, f"{ids} {value}")
        await self.session.unregister_nodes(ids)
        self.check("unregister-nodes", True)

    # --- subscriptions -----------------------------------------------------------------------

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


async def secure(client, args, policy, mode):
    policy = getattr(security_policies, f"SecurityPolicy{policy.replace('_', '')}")
    mode = ua.MessageSecurityMode.Sign if mode == "sign" else ua.MessageSecurityMode.SignAndEncrypt
    await client.set_security(policy, args.cert, args.key, mode=mode)


async def connected(args):
    client = Client(args.url, timeout=args.timeout)
    client.application_uri = "urn:taktwerk:peer:asyncua:client"
    if args.lifetime:
        client.secure_channel_timeout = args.lifetime
    if args.policy:
        await secure(client, args, args.policy, args.mode)
    if args.user:
        client.set_user(args.user)
        client.set_password(args.password)
    await client.connect()
    return client


def report(args, ok, **more):
    library = f"asyncua {importlib.metadata.version('asyncua')}"
    head = {"tool": "asyncua-client", "library": library, "command": args.command, "url": args.url}
    print(json.dumps(head | {"ok": bool(ok)} | more, ensure_ascii=False))
    return 0 if ok else 1


async def smoke(args):
    try:
        client = await connected(args)
    except Exception as e:  # noqa: BLE001
        failed = [{"name": "connect", "ok": False, "detail": f"{type(e).__name__}: {e}"}]
        return report(args, False, passed=0, failed=1, checks=failed)
    s = Smoke(client, args.url)
    s.check("connect", True)
    for step in (s.discovery, s.server_object, s.browse_all, s.browse_steps, s.read_values,
                 s.read_declarations, s.read_timestamps, s.write_values, s.index_ranges,
                 s.errors, s.calls, s.paths, s.registration, s.subscriptions):  # fmt: skip
        await s.run(step)
    try:
        await client.disconnect()
        s.check("close-session", True)
    except Exception as e:  # noqa: BLE001
        s.check("close-session", False, e)
    failed = sum(not c["ok"] for c in s.checks)
    return report(args, failed == 0, passed=len(s.checks) - failed, failed=failed, checks=s.checks)


async def cell(args, policy, mode, user):
    client = Client(args.url, timeout=args.timeout)
    client.application_uri = "urn:taktwerk:peer:asyncua:client"
    await secure(client, args, policy, mode)
    if user == "user":
        client.set_user(args.user)
        client.set_password(args.password)
    elif user == "x509":
        await client.load_client_certificate(args.user_cert)
        await client.load_private_key(args.user_key)
    await client.connect()
    try:
        await client.get_node(ua.NodeId(2258)).read_value()
    finally:
        await client.disconnect()


async def matrix(args):
    """Every policy, mode and kind of user: one line per cell, `ok|failed POLICY MODE USER REASON`."""
    failed = 0
    for policy in args.policy.split(","):
        for mode in ("sign", "encrypt"):
            for user in ("anonymous", "user", "x509"):
                reason = ""
                try:
                    await asyncio.wait_for(cell(args, policy, mode, user), args.timeout)
                except Exception as e:  # noqa: BLE001
                    reason = " ".join(f"{type(e).__name__} {e}".split())
                    failed += 1
                print("failed" if reason else "ok", policy, mode, user, reason, flush=True)
    return 1 if failed else 0


async def renew(args):
    """Reads without a pause while the library renews the channel's token at 75 % of its lifetime."""
    client = await connected(args)
    renewals, open_channel = 0, client.open_secure_channel

    async def counted(renew=False):
        nonlocal renewals
        await open_channel(renew)
        renewals += renew

    client.open_secure_channel = counted
    node, reads, begin = client.get_node(ua.NodeId(2258)), 0, time.monotonic()
    last = None
    try:
        while time.monotonic() - begin < args.seconds:
            value = await node.read_value()
            if last is not None and value < last:
                return report(args, False, error="the clock went back: an old answer")
            last, reads = value, reads + 1
    except Exception as e:  # noqa: BLE001
        return report(args, False, error=f"{type(e).__name__}: {e}", reads=reads, renewals=renewals)
    seconds = time.monotonic() - begin
    await client.disconnect()
    return report(
        args, True, reads=reads, renewals=renewals, seconds=seconds, lifetime_ms=args.lifetime
    )


class Counter:
    def __init__(self):
        self.count = {}
        self.on = False

    def datachange_notification(self, node, value, data):
        if self.on:
            self.count[node.nodeid.Identifier] += 1


async def subscribe(args):
    per = args.items // args.clients
    clients, counters = [], []
    for c in range(args.clients):
        client = await connected(args)
        clients.append(client)
        counter = Counter()
        counters.append(counter)
        sub = await client.create_subscription(args.interval, counter)
        for at in range(c * per, (c + 1) * per, 500):
            span = range(at, min(at + 500, (c + 1) * per))
            counter.count.update({FIRST_SIGNAL + i: 0 for i in span})
            nodes = [client.get_node(ua.NodeId(FIRST_SIGNAL + i, 1)) for i in span]
            await sub.subscribe_data_change(
                nodes, queuesize=1, sampling_interval=float(args.interval)
            )
    await asyncio.sleep(1)
    for counter in counters:
        counter.on = True
    begin, cpu = time.monotonic(), time.process_time()
    await asyncio.sleep(args.seconds)
    seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
    counts = []
    for counter in counters:
        counter.on = False
        counts += counter.count.values()
    for client in clients:
        await client.disconnect()
    total, expected = sum(counts), seconds * 1000 / args.interval
    return report(
        args, counts and min(counts) > 0, items=len(counts), clients=args.clients,
        interval_ms=args.interval, seconds=seconds, notifications=total,
        per_second=total / seconds, expected_per_item=expected,
        mean_per_item=total / max(len(counts), 1), min_per_item=min(counts, default=0),
        max_per_item=max(counts, default=0),
        received_ratio=total / (expected * max(len(counts), 1)), client_cpu_s=cpu,
    )  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("command", choices=["smoke", "subscribe", "matrix", "renew"])
    p.add_argument("url")
    p.add_argument("--items", type=int, default=100)
    p.add_argument("--clients", type=int, default=1)
    p.add_argument("--interval", type=float, default=100, metavar="MS")
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--timeout", type=float, default=20, help="seconds for each request")
    p.add_argument("--user")
    p.add_argument("--password", default="")
    p.add_argument("--policy", help="such as Basic256Sha256; matrix takes several, with commas")
    p.add_argument("--mode", choices=["sign", "encrypt"], default="encrypt")
    p.add_argument("--cert", metavar="FILE")
    p.add_argument("--key", metavar="FILE")
    p.add_argument("--user-cert", metavar="FILE")
    p.add_argument("--user-key", metavar="FILE")
    p.add_argument("--lifetime", type=int, default=0, metavar="MS", help="of security tokens")
    p.add_argument("--verbose", action="store_true")
    args = p.parse_args()
    level = logging.INFO if args.verbose else logging.CRITICAL
    logging.basicConfig(stream=sys.stderr, level=level)
    command = {"smoke": smoke, "subscribe": subscribe, "matrix": matrix, "renew": renew}
    sys.exit(asyncio.run(command[args.command](args)))


if __name__ == "__main__":
    main()
