# SPDX-License-Identifier: MIT OR Apache-2.0
"""Steps through the Attribute and Method services: values, ranges, errors, calls."""

import testnodes as tn
from asyncua import ua
from steps import Steps, status_name, status_of


class ValueSteps(Steps):
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
        # If a server accepts one of these writes, the next run must not fail, too.
        await self.write(target, tn.scalar("Int32", self.ns))
        params = ua.ReadParameters()
        await self.expect_error("read nothing", self.session.read(params), C.BadNothingToDo)
        item = ua.ReadValueId()
        item.NodeId, item.AttributeId = answer, ua.AttributeIds.Value
        params.NodesToRead, params.MaxAge = [item], -1.0
        await self.expect_error("read negative max age", self.session.read(params),
                                C.BadMaxAgeInvalid)  # fmt: skip

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
