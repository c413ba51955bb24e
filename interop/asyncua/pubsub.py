#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""asyncua's publisher and subscriber for interop: UADP over UDP, without message security, which it does not have.

The flags, the data set and the output are those of o6-pubsub. The layout "fixed" is left out: asyncua neither pads
RawData nor finds DataSetMessages without a PayloadHeader.
"""

import argparse
import asyncio
import logging
from datetime import datetime, timezone

from asyncua import pubsub, ua
from asyncua.pubsub.dataset import PubSubDataSource

PUBLISHER_ID = ua.Variant(ua.UInt16(2234), ua.VariantType.UInt16)
WRITER_GROUP_ID = ua.UInt16(100)
DATA_SET_WRITER_ID = ua.UInt16(62541)


def meta():
    m = pubsub.DataSetMeta.Create("set")
    version = ua.ConfigurationVersionDataType(ua.UInt32(1), ua.UInt32(1))
    m.add_scalar("count", ua.VariantType.UInt32)
    m.add_scalar("x", ua.VariantType.Double)
    m.add_scalar("flag", ua.VariantType.Boolean)
    m.add_scalar("text", ua.VariantType.String)
    m.get_config().ConfigurationVersion = version
    return m


class Counter(PubSubDataSource):
    """A counter that increments with every sample."""

    def __init__(self):
        self.count = 0

    async def on_get_value(self):
        self.count += 1
        n = self.count
        now = datetime.now(timezone.utc)
        values = [
            ua.Variant(n, ua.VariantType.UInt32),
            ua.Variant(n + 0.5, ua.VariantType.Double),
            ua.Variant(n % 2 == 1, ua.VariantType.Boolean),
            ua.Variant(f"t{n}", ua.VariantType.String),
        ]
        return [ua.DataValue(v, ua.StatusCode(0), now, now) for v in values]


class Printer:
    """Prints received values."""

    def __init__(self):
        self.last = 0

    async def on_dataset_received(self, _meta, fields):
        count, x, flag, text = (f.Value.Value.Value for f in fields)
        print(f"{count} {x:.1f} {str(flag).lower()} {text}", flush=True)
        self.last = count

    async def on_state_change(self, *_):
        pass


def writer_group(layout, interval):
    mask = ua.UadpNetworkMessageContentMask
    network = mask.PublisherId | mask.PayloadHeader
    content = ua.UadpDataSetMessageContentMask
    message = content.Status | content.SequenceNumber | content.Timestamp | content.MinorVersion
    field = ua.DataSetFieldContentMask
    fields = field(0)
    if layout == "full":
        network |= mask.GroupHeader | mask.WriterGroupId | mask.SequenceNumber | mask.Timestamp
        fields = field.StatusCode | field.SourceTimestamp
    writer = ua.DataSetWriterDataType(
        Name="writer",
        Enabled=True,
        DataSetWriterId=DATA_SET_WRITER_ID,
        DataSetName="set",
        KeyFrameCount=ua.UInt32(1),
        MessageSettings=ua.UadpDataSetWriterMessageDataType(DataSetMessageContentMask=message),
        DataSetFieldContentMask=fields,
    )
    group = ua.WriterGroupDataType(
        Name="group",
        Enabled=True,
        WriterGroupId=WRITER_GROUP_ID,
        PublishingInterval=interval,
        MessageSettings=ua.UadpWriterGroupMessageDataType(
            NetworkMessageContentMask=network, DataSetOrdering=ua.DataSetOrderingType.AscendingWriterId
        ),
        DataSetWriters=[writer],
    )
    return pubsub.WriterGroup(group)


async def publish(args):
    source = Counter()
    connection = pubsub.PubSubConnection.udp_uadp(
        "udp",
        PUBLISHER_ID,
        pubsub.UdpSettings(Url=args.url),
        writer_groups=[writer_group(args.layout, args.interval)],
    )
    # It binds to the port it sends to, which the subscriber uses.
    connection._network_settings.Adapter = ("127.0.0.1", 0)
    ps = pubsub.PubSub.new(datasets=[pubsub.PublishedDataSet.Create("set", meta(), source)])
    await ps.add_connection(connection)
    await ps.start()
    while source.count < args.count and not connection._writer_tasks.done():
        await asyncio.sleep(args.interval / 2000)
    if connection._writer_tasks.done():
        # Raises the error that occurred.
        connection._writer_tasks.result()
    await ps.stop()
    print(f"PUBLISHED {source.count}")


async def subscribe(args):
    printer = Printer()
    reader = pubsub.DataSetReader.new(
        PUBLISHER_ID,
        ua.UInt16(WRITER_GROUP_ID if args.layout == "full" else 0),
        DATA_SET_WRITER_ID,
        meta(),
        name="reader",
        enabled=True,
        subscribed=printer,
    )
    group = pubsub.ReaderGroup.new(name="group", reader=[reader], enable=True)
    connection = pubsub.PubSubConnection.udp_uadp(
        "udp", PUBLISHER_ID, pubsub.UdpSettings(Url=args.url), reader_groups=[group]
    )
    ps = pubsub.PubSub.new()
    await ps.add_connection(connection)
    await ps.start()
    print(f"READY {args.url}", flush=True)
    end = asyncio.get_running_loop().time() + args.seconds
    while printer.last < args.count and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.01)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("role", choices=["publish", "subscribe"])
    p.add_argument("--url", required=True)
    p.add_argument("--layout", choices=["dynamic", "full"], default="dynamic")
    p.add_argument("--mode", choices=["none"], default="none")
    p.add_argument("--interval", type=float, default=10)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--seconds", type=float, default=10)
    args = p.parse_args()
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(publish(args) if args.role == "publish" else subscribe(args))


main()
