#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""asyncua makes a subscription of a Taktwerk server durable, is disconnected when the server is killed, and gets all values.

    durable.py leave URL FILE   makes it, leaves without deleting it, writes values as another client; FILE gets its id
    durable.py return URL FILE  transfers it from the server that was started anew, and counts what it has

Prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.
"""

import asyncio
import pathlib
import sys

from asyncua import Client, ua
from nodes import Checks

COUNT = 200
OVERFLOW = 0x480


async def answer(client):
    interop = await client.get_namespace_index("urn:taktwerk:interop")
    return client.get_node(ua.NodeId("the.answer", interop))


class Ignore:
    def datachange_notification(self, node, value, data):
        pass

    def status_change_notification(self, status):
        pass


async def leave(url, file, checks):
    client = Client(url)
    await client.connect()
    subscription = await client.create_subscription(50, Ignore())
    method = await client.nodes.server.get_child("0:SetSubscriptionDurable")
    number = ua.Variant(subscription.subscription_id, ua.VariantType.UInt32)
    hours = await client.nodes.server.call_method(method, number, ua.Variant(2, ua.VariantType.UInt32))
    checks("a subscription is durable", hours == 2, repr(hours))
    await subscription.subscribe_data_change(await answer(client), queuesize=1000, sampling_interval=0.0)
    await checks.refuses(
        "one that has items cannot become durable",
        client.nodes.server.call_method(method, number, ua.Variant(2, ua.VariantType.UInt32)),
        ua.uaerrors.BadInvalidState,
    )
    # The session ends; its subscription stays.
    await client.uaclient.session.close_session(False)
    await client.uaclient.close_secure_channel()
    client.uaclient.disconnect_socket()
    async with Client(url) as writer:
        node = await answer(writer)
        for value in range(1, COUNT + 1):
            await node.write_value(ua.Variant(value, ua.VariantType.Int32))
    # Longer than the interval at which pending data is written to disk.
    await asyncio.sleep(1)
    pathlib.Path(file).write_text(str(subscription.subscription_id))


async def back(url, file, checks):
    number = int(pathlib.Path(file).read_text())
    async with Client(url) as client:
        parameters = ua.TransferSubscriptionsParameters(SubscriptionIds=[number], SendInitialValues=False)
        result = (await client.uaclient.transfer_subscriptions(parameters))[0]
        checks("it is transferred after the server was killed", result.StatusCode.is_good(), str(result.StatusCode))
        values, overflows, acknowledged = [], [], []
        while COUNT not in values:
            response = await asyncio.wait_for(client.uaclient.publish(acknowledged), 20)
            message = response.Parameters.NotificationMessage
            acknowledged = []
            for data in message.NotificationData or []:
                if not isinstance(data, ua.DataChangeNotification):
                    continue
                for item in data.MonitoredItems:
                    values.append(item.Value.Value.Value)
                    overflows.append(item.Value.StatusCode.value & OVERFLOW == OVERFLOW)
            if message.NotificationData:
                acknowledgement = ua.SubscriptionAcknowledgement(
                    SubscriptionId=number, SequenceNumber=message.SequenceNumber
                )
                acknowledged = [acknowledgement]
        # Before them may be the item's value at its creation, after them its value after the restart.
        start = values.index(1) if 1 in values else 0
        written = values[start : start + COUNT]
        checks("all values are there, in order", written == list(range(1, COUNT + 1)), str(values[:5]))
        # The value after them has the overflow bit: the server cannot know whether later values were lost when it was
        # killed.
        checks("and none was lost", not any(overflows[start : start + COUNT]))


async def main(command, url, file):
    checks = Checks()
    await {"leave": leave, "return": back}[command](url, file, checks)
    print(f"count: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:4])))
