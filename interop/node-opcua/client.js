// SPDX-License-Identifier: MIT OR Apache-2.0
//
// node-opcua as a client of a Taktwerk server: events, alarms, history, nodes, durable subscriptions.
//   node client.js operate URL     a server with the interop test nodes, the demo plant and node management
//   node client.js change URL      a server whose history may be written; NODE is recorded
//   node client.js leave URL FILE  makes a subscription durable and leaves; FILE gets its id
//   node client.js return URL FILE gets its values from the server that was started again
//
// Prints a line for each check and `count: N passed, M failed`, and ends with 1 if one failed.
"use strict";

const fs = require("fs");
const { AttributeIds, TimestampsToReturn, TransferSubscriptionsRequest } = require("node-opcua-client");
const { DataType, Variant } = require("node-opcua-variant");
const { Checks, connect, pause, send, subscribe } = require("./checks.js");
const { alarms, events } = require("./alarm_steps.js");
const { history, update } = require("./history_steps.js");
const { nodes } = require("./node_steps.js");

const INTEROP = "urn:taktwerk:interop";
const WRITES = 200;
const OVERFLOW = 0x480;

async function answer(session) {
    const index = (await session.readNamespaceArray()).indexOf(INTEROP);
    return `ns=${index};s=the.answer`;
}

async function leave(session, checks, file) {
    const subscription = await subscribe(session);
    const made = await session.call({
        objectId: "i=2253",
        methodId: "i=12749",
        inputArguments: [
            new Variant({ dataType: DataType.UInt32, value: subscription.subscriptionId }),
            new Variant({ dataType: DataType.UInt32, value: 2 }),
        ],
    });
    checks.status("a subscription becomes durable", made.statusCode, "Good");
    checks.check("for the requested hours", made.outputArguments?.[0]?.value === 2, made.outputArguments);
    const node = await answer(session);
    await subscription.monitor(
        { nodeId: node, attributeId: AttributeIds.Value },
        { samplingInterval: 0, discardOldest: true, queueSize: 1000 },
        TimestampsToReturn.Both,
    );
    fs.writeFileSync(file, String(subscription.subscriptionId));
}

async function write(session) {
    const node = await answer(session);
    for (let value = 1; value <= WRITES; value++) {
        await session.write({
            nodeId: node,
            attributeId: AttributeIds.Value,
            value: { value: { dataType: DataType.Int32, value } },
        });
    }
    // Longer than the interval at which pending data is written to disk.
    await pause(1000);
}

async function back(session, checks, file) {
    const subscriptionId = Number(fs.readFileSync(file, "utf8"));
    const values = [];
    const overflows = [];
    // The library publishes only for subscriptions that it knows, so this one sends the requests itself.
    const { PublishRequest } = require("node-opcua-service-subscription");
    const moved = await send(
        session,
        new TransferSubscriptionsRequest({ subscriptionIds: [subscriptionId], sendInitialValues: false }),
    );
    checks.status("it is transferred after the server was killed", moved.results[0].statusCode, "Good");
    let acknowledgements = [];
    while (!values.includes(WRITES)) {
        const request = new PublishRequest({ subscriptionAcknowledgements: acknowledgements });
        const response = await send(session, request);
        acknowledgements = [];
        const { notificationData, sequenceNumber } = response.notificationMessage;
        for (const data of notificationData ?? []) {
            for (const item of data.monitoredItems ?? []) {
                values.push(item.value.value.value);
                overflows.push((item.value.statusCode.value & OVERFLOW) === OVERFLOW);
            }
        }
        if (notificationData?.length) acknowledgements = [{ subscriptionId, sequenceNumber }];
    }
    // Before them may be the item's value at its creation.
    const start = Math.max(0, values.indexOf(1));
    const written = values.slice(start, start + WRITES);
    checks.check("all values are there, in order", written.every((value, index) => value === index + 1), written);
    checks.check("and none was lost", !overflows.slice(start, start + WRITES).includes(true));
}

async function main(command, url, file) {
    const checks = new Checks();
    const { client, session } = await connect(url);
    switch (command) {
        case "operate":
            await checks.step("events", () => events(session, checks));
            await checks.step("alarms", () => alarms(session, checks));
            await checks.step("history", () => history(session, checks));
            await checks.step("nodes", () => nodes(session, checks));
            break;
        case "change":
            await checks.step("update", () => update(session, checks));
            break;
        case "leave": {
            await checks.step("durable", () => leave(session, checks, file));
            const other = await connect(url);
            // The subscription stays.
            await session.close(false);
            await write(other.session);
            await other.session.close();
            await other.client.disconnect();
            break;
        }
        case "return":
            await checks.step("durable", () => back(session, checks, file));
            break;
        default:
            throw new Error(`unknown command ${command}`);
    }
    await client.disconnect();
    process.exit(checks.end());
}

main(...process.argv.slice(2)).catch((error) => {
    console.log(`FAILED ${error.stack}`);
    console.log("count: 0 passed, 1 failed");
    process.exit(1);
});
