#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""An asyncua server with N changing variables and the interop test node set."""

import argparse
import asyncio
import logging
import os
import pathlib
import signal
import socket
import sys
import time
from datetime import datetime, timezone

import testnodes as tn
from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole

FIRST_SIGNAL = 100000
SIGNAL_FOLDER = 99999
READ = 1
WRITE = 2


class Users:
    """Anonymous, the two users of the test node set, and one with a certificate."""

    known = {"user1": "password", "user2": "password1"}

    def __init__(self, certificate_user):
        self.certificate_user = certificate_user

    def get_user(self, iserver, username=None, password=None, certificate=None):
        # The library passes the user's certificate, or the application's if the user is anonymous.
        if username is None and certificate and certificate == self.certificate_user:
            return User(role=UserRole.User, name="certificate")
        if username is None or self.known.get(username) == password:
            # Only administrators add nodes, and they may write what is read-only.
            role = UserRole.Admin if username == "user2" else UserRole.User
            return User(role=role, name=username or "anonymous")
        return None


class Builder:
    """Adds nodes with exactly the ids, references and attributes of TESTNODES.md."""

    def __init__(self, server, ns):
        self.session = server.iserver.isession
        self.server = server
        self.ns = ns

    def id(self, ident):
        return ua.NodeId(ident, self.ns)

    async def _add(self, node_id, parent, reference, name, node_class, definition, attrs):
        attrs.DisplayName = ua.LocalizedText(name.Name)
        item = ua.AddNodesItem()
        item.RequestedNewNodeId = node_id
        item.ParentNodeId = parent
        item.ReferenceTypeId = ua.NodeId(reference)
        item.BrowseName = name
        item.NodeClass = node_class
        item.TypeDefinition = ua.NodeId(definition)
        item.NodeAttributes = attrs
        (result,) = await self.session.add_nodes([item])
        result.StatusCode.check()

    async def folder(self, node_id, parent, name, definition=ua.ObjectIds.FolderType):
        await self._add(
            node_id, parent, ua.ObjectIds.Organizes, name, ua.NodeClass.Object, definition,
            ua.ObjectAttributes(),
        )  # fmt: skip

    async def variable(
        self, node_id, parent, name, value, data_type, rank=-1, access=READ | WRITE,
        definition=ua.ObjectIds.BaseDataVariableType, reference=ua.ObjectIds.HasComponent,
    ):  # fmt: skip
        attrs = ua.VariableAttributes()
        attrs.Value = value
        attrs.DataType = data_type
        attrs.ValueRank = rank
        attrs.AccessLevel = access
        attrs.UserAccessLevel = access
        if rank > 0:
            attrs.ArrayDimensions = [2, 3] if rank == 2 else [0]
        await self._add(node_id, parent, reference, name, ua.NodeClass.Variable, definition, attrs)

    async def test_variable(self, ident, parent, value, data_type, **more):
        name = ua.QualifiedName(ident.rsplit("/", 1)[-1], self.ns)
        await self.variable(self.id(ident), self.id(parent), name, value, data_type, **more)


def argument(name, data_type):
    a = ua.Argument()
    a.Name = name
    a.DataType = ua.NodeId(data_type)
    a.ValueRank = -1
    a.ArrayDimensions = []
    a.Description = ua.LocalizedText("")
    return a


def int32(v):
    return ua.Variant(v, ua.VariantType.Int32)


def wrap(v):
    return (v + (1 << 31)) % (1 << 32) - (1 << 31)


def method_add(parent, a, b):
    return [int32(wrap(a.Value + b.Value))]


def method_hello(parent, name):
    return [ua.Variant(f"Hello, {name.Value}!", ua.VariantType.String)]


def method_none(parent):
    return []


def method_fail(parent):
    return ua.StatusCode(ua.StatusCodes.BadInvalidState)


async def add_test_nodes(server):
    ns = await server.register_namespace(tn.URI)
    b = Builder(server, ns)
    objects = ua.NodeId(ua.ObjectIds.ObjectsFolder)
    await b.folder(b.id("interop"), objects, ua.QualifiedName("interop", ns))
    for folder in ("scalar", "array", "matrix", "struct"):
        await b.folder(b.id(folder), b.id("interop"), ua.QualifiedName(folder, ns))

    for name in tn.TYPES:
        rank = -2 if name == "Variant" else -1
        await b.test_variable(
            f"scalar/{name}", "scalar", tn.scalar(name, ns), tn.data_type(name), rank=rank
        )
        await b.test_variable(
            f"array/{name}", "array", tn.array(name, ns), tn.data_type(name), rank=1
        )
    double, i32 = ua.NodeId(11), ua.NodeId(6)
    range_type, unit_type = ua.NodeId(884), ua.NodeId(887)
    await b.test_variable("matrix/Double", "matrix", tn.matrix(), double, rank=2)
    await b.test_variable("struct/Range", "struct", tn.range_(), range_type)
    await b.test_variable("struct/EUInformation", "struct", tn.unit(), unit_type)
    await b.test_variable("the.answer", "interop", int32(43), i32)
    await b.test_variable("readonly", "interop", int32(17), i32, access=READ)
    await b.test_variable("writeonly", "interop", int32(0), i32, access=WRITE)
    await b.test_variable(
        "counter", "interop", ua.Variant(0, ua.VariantType.UInt32), ua.NodeId(7), access=READ
    )
    await b.test_variable(
        "analog", "interop", ua.Variant(50.0, ua.VariantType.Double), double,
        definition=ua.ObjectIds.AnalogItemType,
    )  # fmt: skip
    await b.variable(
        b.id("analog/EURange"), b.id("analog"), ua.QualifiedName("EURange", 0), tn.range_(),
        range_type, definition=ua.ObjectIds.PropertyType, reference=ua.ObjectIds.HasProperty,
    )  # fmt: skip

    await b.folder(
        b.id("methods"), b.id("interop"), ua.QualifiedName("methods", ns),
        definition=ua.ObjectIds.BaseObjectType,
    )  # fmt: skip
    methods = server.get_node(b.id("methods"))
    for name, func, inputs, outputs in (
        ("add", method_add, [argument("a", 6), argument("b", 6)], [argument("sum", 6)]),
        ("hello", method_hello, [argument("name", 12)], [argument("greeting", 12)]),
        ("none", method_none, [], []),
        ("fail", method_fail, [], []),
    ):
        await methods.add_method(
            b.id(f"method/{name}"), ua.QualifiedName(name, ns), func, inputs, outputs
        )
    return b.id("counter")


async def add_signals(server, count):
    b = Builder(server, 1)
    folder = ua.NodeId(SIGNAL_FOLDER, 1)
    objects = ua.NodeId(ua.ObjectIds.ObjectsFolder)
    await b.folder(folder, objects, ua.QualifiedName("signals", 1))
    ids = [ua.NodeId(FIRST_SIGNAL + i, 1) for i in range(count)]
    for i, node_id in enumerate(ids):
        value = ua.Variant(float(i), ua.VariantType.Double)
        await b.variable(
            node_id, folder, ua.QualifiedName(f"signal{i}", 1), value, ua.NodeId(11)
        )
    return ids


def stamped(value, kind):
    now = datetime.now(timezone.utc)
    return ua.DataValue(ua.Variant(value, kind), SourceTimestamp=now, ServerTimestamp=now)


async def every(seconds, action):
    """Calls `action(n)` on a fixed grid; missed rounds are skipped."""
    loop = asyncio.get_running_loop()
    due, n = loop.time(), 0
    while True:
        n += 1
        await action(n)
        due = max(due + seconds, loop.time())
        await asyncio.sleep(due - loop.time())


async def watch_stdin(stop):
    while await asyncio.to_thread(os.read, 0, 256):
        pass
    stop.set()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


async def serve(args):
    user = pathlib.Path(args.trust_user).read_bytes() if args.trust_user else None
    server = Server(user_manager=Users(user))
    await server.init()
    port = args.port or free_port()
    server.set_endpoint(f"opc.tcp://{args.bind}:{port}")
    await server.set_application_uri("urn:taktwerk:peer:asyncua:server")
    server.set_server_name("asyncua peer")
    policies = [ua.SecurityPolicyType.NoSecurity]
    if args.policies == "all":
        await server.load_certificate(args.cert)
        await server.load_private_key(args.key)
        policies += [p for p in ua.SecurityPolicyType if "256" in p.name and "Basic256_" not in p.name]
    server.set_security_policy(policies)

    counter = await add_test_nodes(server)
    ids = await add_signals(server, args.variables)

    async def count(n):
        await server.write_attribute_value(counter, stamped(n, ua.VariantType.UInt32))

    async def update(n):
        for i, node_id in enumerate(ids):
            value = time.time() if args.signal_values == "time" else float(n + i)
            await server.write_attribute_value(node_id, stamped(value, ua.VariantType.Double))

    stop = asyncio.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sig, stop.set)
    await server.start()
    tasks = [asyncio.create_task(every(0.1, count))]
    if args.update > 0 and ids:
        tasks.append(asyncio.create_task(every(args.update / 1000, update)))
    if args.exit_with_stdin:
        tasks.append(asyncio.create_task(watch_stdin(stop)))
    print(f"READY opc.tcp://{args.bind}:{port}", flush=True)
    await stop.wait()
    for task in tasks:
        task.cancel()
    await server.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--port", type=int, default=4840, help="0 takes a free one")
    p.add_argument("--bind", default="127.0.0.1")
    p.add_argument("--variables", type=int, default=0)
    p.add_argument("--update", type=float, default=0, metavar="MS", help="0 = never")
    p.add_argument("--signal-values", choices=["count", "time"], default="count")
    p.add_argument("--policies", choices=["none", "all"], default="none")
    p.add_argument("--cert", metavar="FILE")
    p.add_argument("--key", metavar="FILE")
    p.add_argument("--trust-user", metavar="FILE", help="the certificate of a user, DER")
    p.add_argument("--exit-with-stdin", action="store_true")
    p.add_argument("--verbose", action="store_true")
    args = p.parse_args()
    level = logging.INFO if args.verbose else logging.CRITICAL
    logging.basicConfig(stream=sys.stderr, level=level)
    asyncio.run(serve(args))
    # A thread may still be blocked on stdin; nothing is left to clean up.
    os._exit(0)


if __name__ == "__main__":
    main()
