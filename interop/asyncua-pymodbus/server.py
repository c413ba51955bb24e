# SPDX-License-Identifier: MIT OR Apache-2.0
"""A gateway: an OPC UA server of asyncua that shows registers of Modbus TCP devices, read by pymodbus.

    server.py --port P --devices HOST:PORT,… --variables REGISTERS --update MS [--bind ADDR] [--exit-with-stdin]

Holding register R of device number D is the UInt16 variable `s=dD/R` of the namespace urn:taktwerk:gateway. Each device has
a connection and a task of its own, is read in blocks as large as the protocol allows, and only changed values are written,
by the library's call that it says is the quickest.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from datetime import datetime, timezone

from asyncua import Server, ua
from pymodbus.client import AsyncModbusTcpClient

URI = "urn:taktwerk:gateway"
# Registers in one request (Modbus Application Protocol 1.1b3, 6.3).
BLOCK = 125


async def add_nodes(server, ns, devices, registers):
    """A folder for each device and in it a variable for each register; the ids of the variables by device."""
    session = server.iserver.isession
    objects = ua.NodeId(ua.ObjectIds.ObjectsFolder)

    async def add(node_id, parent, reference, node_class, definition, attributes):
        name = node_id.Identifier.rsplit("/", 1)[-1]
        attributes.DisplayName = ua.LocalizedText(name)
        item = ua.AddNodesItem()
        item.RequestedNewNodeId = node_id
        item.ParentNodeId = parent
        item.ReferenceTypeId = ua.NodeId(reference)
        item.BrowseName = ua.QualifiedName(name, ns)
        item.NodeClass = node_class
        item.TypeDefinition = ua.NodeId(definition)
        item.NodeAttributes = attributes
        (result,) = await session.add_nodes([item])
        result.StatusCode.check()

    ids = []
    for device in range(devices):
        folder = ua.NodeId(f"d{device}", ns)
        await add(
            folder, objects, ua.ObjectIds.Organizes, ua.NodeClass.Object, ua.ObjectIds.FolderType,
            ua.ObjectAttributes(),
        )  # fmt: skip
        of_device = []
        for register in range(registers):
            node_id = ua.NodeId(f"d{device}/{register}", ns)
            attributes = ua.VariableAttributes()
            attributes.Value = ua.Variant(0, ua.VariantType.UInt16)
            attributes.DataType = ua.NodeId(ua.ObjectIds.UInt16)
            attributes.ValueRank = -1
            attributes.AccessLevel = attributes.UserAccessLevel = ua.AccessLevel.CurrentRead.mask
            await add(
                node_id, folder, ua.ObjectIds.HasComponent, ua.NodeClass.Variable,
                ua.ObjectIds.BaseDataVariableType, attributes,
            )  # fmt: skip
            of_device.append(node_id)
        ids.append(of_device)
    return ids


async def read(client, registers):
    """All registers of a device: the blocks are read one after the other, as most devices require."""
    values = []
    for first in range(0, registers, BLOCK):
        answer = await client.read_holding_registers(first, count=min(BLOCK, registers - first))
        if answer.isError():
            raise ConnectionError(str(answer))
        values += answer.registers
    return values


async def poll(server, address, ids, seconds):
    """Reads a device on a fixed grid for ever; missed rounds are skipped."""
    host, port = address.rsplit(":", 1)
    client = AsyncModbusTcpClient(host, port=int(port), timeout=3, retries=0)
    write, kind, value_id = server.iserver.aspace.write_attribute_value, ua.VariantType.UInt16, ua.AttributeIds.Value
    last = [None] * len(ids)
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        try:
            if not client.connected:
                await client.connect()
            values = await read(client, len(ids))
            now = datetime.now(timezone.utc)
            for at, value in enumerate(values):
                if value != last[at]:
                    stamped = ua.DataValue(ua.Variant(value, kind), SourceTimestamp=now, ServerTimestamp=now)
                    await write(ids[at], value_id, stamped)
            last = values
        except Exception as error:  # pymodbus raises errors that have no base of their own
            print(f"{address}: {error}", file=sys.stderr)
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
    server = Server()
    await server.init()
    port = args.port or free_port()
    server.set_endpoint(f"opc.tcp://{args.bind}:{port}")
    await server.set_application_uri("urn:taktwerk:peer:asyncua-pymodbus:server")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    ns = await server.register_namespace(URI)
    devices = [device for device in args.devices.split(",") if device]
    ids = await add_nodes(server, ns, len(devices), args.variables)

    stop = asyncio.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sig, stop.set)
    await server.start()
    # Existing objects stay: exclude them from garbage collection.
    gc.collect()
    gc.freeze()
    tasks = [asyncio.create_task(poll(server, *it, args.update / 1000)) for it in zip(devices, ids)]
    if args.exit_with_stdin:
        tasks.append(asyncio.create_task(watch_stdin(stop)))
    print(f"NAMESPACE {ns}", flush=True)
    print(f"READY opc.tcp://{args.bind}:{port}", flush=True)
    await stop.wait()
    for task in tasks:
        task.cancel()
    await server.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--port", type=int, default=4840, help="0 takes a free one")
    p.add_argument("--bind", default="127.0.0.1")
    p.add_argument("--devices", default="", metavar="HOST:PORT,…")
    p.add_argument("--variables", type=int, default=200, help="registers of each device")
    p.add_argument("--update", type=float, default=100, metavar="MS", help="how often each device is read")
    p.add_argument("--exit-with-stdin", action="store_true")
    args = p.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL)
    asyncio.run(serve(args))
    # A thread may still be blocked on stdin; nothing is left to clean up.
    os._exit(0)


if __name__ == "__main__":
    main()
