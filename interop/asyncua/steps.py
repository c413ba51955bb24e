# SPDX-License-Identifier: MIT OR Apache-2.0
"""The basis of the asyncua client's smoke test steps: a session, single operations, a list of checks."""

import sys

import testnodes as tn
from asyncua import ua

GOOD = ua.StatusCode()


def status_name(code):
    value = code.value if isinstance(code, ua.StatusCode) else code
    name = ua.StatusCode(value).name
    return name if name else hex(value)


def error_code(error):
    """The StatusCode of an asyncua exception, or None."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def status_of(value):
    """The status of a DataValue; on the wire a good one is usually left out."""
    return value.StatusCode if value.StatusCode is not None else GOOD


class Steps:
    """Checks that are made one after the other on one session."""

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
        # Without a status: open62541 treats a first explicit Good as a change of status, which passes every deadband.
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

    async def call(self, method, *args, obj=None):
        request = ua.CallMethodRequest()
        request.ObjectId = obj or self.id("methods")
        request.MethodId = self.id(method) if isinstance(method, str) else method
        request.InputArguments = list(args)
        (result,) = await self.session.call([request])
        return result
