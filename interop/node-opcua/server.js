// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A node-opcua server with N changing variables.
//   node server.js --port P --variables N --update MS [--bind ADDR] [--exit-with-stdin]
"use strict";

const net = require("net");
const os = require("os");
const path = require("path");
const fs = require("fs");
const { OPCUAServer } = require("node-opcua-server");
const { DataType, Variant } = require("node-opcua-variant");
const { StatusCodes } = require("node-opcua-status-code");
const { MessageSecurityMode, SecurityPolicy } = require("node-opcua-secure-channel");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");

const FIRST_SIGNAL = 100000;
const SIGNAL_FOLDER = 99999;
// The interop test node that clients write and monitor.
const INTEROP = "urn:taktwerk:interop";
const PAYLOAD = "scalar/ByteString";

const option = (name, otherwise) => {
    const at = process.argv.indexOf("--" + name);
    return at < 0 ? otherwise : process.argv[at + 1];
};

function freePort(address) {
    return new Promise((resolve, reject) => {
        const server = net.createServer().once("error", reject);
        server.listen(0, address, () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

async function main() {
    const bind = option("bind", "127.0.0.1");
    const count = Number(option("variables", "0"));
    const update = Number(option("update", "0"));
    const port = Number(option("port", "4840")) || (await freePort(bind));
    // The library requires a folder for keys; this one is removed at the end.
    const pki = fs.mkdtempSync(path.join(os.tmpdir(), "node-opcua-peer-"));
    const leave = () => {
        fs.rmSync(pki, { recursive: true, force: true });
        process.exit(0);
    };
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, leave);
    if (process.argv.includes("--exit-with-stdin")) {
        process.stdin.resume();
        process.stdin.on("end", leave);
        process.stdin.on("error", leave);
    }

    const certificates = new OPCUACertificateManager({ rootFolder: pki, automaticallyAcceptUnknownCertificate: true });
    await certificates.initialize();
    const server = new OPCUAServer({
        port,
        host: bind,
        hostname: bind,
        serverCertificateManager: certificates,
        userCertificateManager: certificates,
        securityModes: [MessageSecurityMode.None],
        securityPolicies: [SecurityPolicy.None],
        allowAnonymous: true,
        maxConnectionsPerEndpoint: 10000,
        maxAllowedSessionNumber: 10000,
        serverInfo: { applicationUri: "urn:taktwerk:peer:node-opcua:server" },
        serverCapabilities: {
            maxSessions: 10000,
            maxSubscriptions: 100000,
            maxSubscriptionsPerSession: 1000,
            maxMonitoredItems: 10000000,
            maxMonitoredItemsPerSubscription: 1000000,
        },
    });
    await server.initialize();
    const space = server.engine.addressSpace.getOwnNamespace();
    const folder = space.addFolder(server.engine.addressSpace.rootFolder.objects, {
        nodeId: `i=${SIGNAL_FOLDER}`,
        browseName: "signals",
    });
    const variables = [];
    for (let index = 0; index < count; index++) {
        const variable = space.addVariable({
            componentOf: folder,
            nodeId: `i=${FIRST_SIGNAL + index}`,
            browseName: `signal${index}`,
            dataType: DataType.Double,
            minimumSamplingInterval: 0,
        });
        variable.setValueFromSource({ dataType: DataType.Double, value: index });
        variables.push(variable);
    }
    const payload = server.engine.addressSpace.registerNamespace(INTEROP).addVariable({
        componentOf: folder,
        nodeId: `s=${PAYLOAD}`,
        browseName: "ByteString",
        dataType: DataType.ByteString,
        accessLevel: "CurrentRead | CurrentWrite",
        userAccessLevel: "CurrentRead | CurrentWrite",
        minimumSamplingInterval: 0,
    });
    payload.setValueFromSource({ dataType: DataType.ByteString, value: Buffer.alloc(0) });
    await server.start();
    if (update > 0) {
        const start = performance.now();
        let turn = 0;
        const next = () => {
            turn += 1;
            const now = new Date();
            variables.forEach((variable, index) => {
                const value = new Variant({ dataType: DataType.Double, value: turn + index });
                variable.setValueFromSource(value, StatusCodes.Good, now);
            });
            setTimeout(next, Math.max(0, start + (turn + 1) * update - performance.now()));
        };
        setTimeout(next, update);
    }
    console.log(`READY opc.tcp://${bind}:${port}`);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
