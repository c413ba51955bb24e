// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A gateway: Node-RED with its Modbus and OPC UA nodes, and a flow that this program makes.
//   node server.js --port P --devices HOST:PORT,… --variables REGISTERS --update MS [--bind ADDR] [--exit-with-stdin]
//
// Holding register R of device number D is the UInt16 variable `s=dD/R` of the namespace urn:taktwerk:gateway. For each
// device there is a Modbus client and, for each block of as many registers as the protocol allows, a node that reads it
// and a function that passes changes to the node of the server, as one message. The variables come from a nodeset file:
// variables created by messages to the server's node have a minimum sampling interval of 500 ms.
"use strict";

const fs = require("fs");
const http = require("http");
const net = require("net");
const os = require("os");
const path = require("path");

const URI = "urn:taktwerk:gateway";
// Registers in one request (Modbus Application Protocol 1.1b3, 6.3).
const BLOCK = 125;

const option = (name, otherwise) => {
    const at = process.argv.indexOf("--" + name);
    return at < 0 ? otherwise : process.argv[at + 1];
};
const bind = option("bind", "127.0.0.1");
const devices = option("devices", "").split(",").filter(Boolean);
const registers = Number(option("variables", "200"));
const update = Number(option("update", "100"));

// Flow, keys and settings are removed at the end. The OPC UA nodes keep keys in the user's configuration folder.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "node-red-peer-"));
process.env.XDG_CONFIG_HOME = folder;
const leave = (code) => {
    fs.rmSync(folder, { recursive: true, force: true });
    process.exit(code);
};

// The server's node has no setting for the address and listens on all of them.
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...more) {
    return typeof port === "number" ? listen.call(this, port, bind, ...more.filter((it) => typeof it === "function"))
        : listen.call(this, port, ...more);
};

function freePort() {
    return new Promise((resolve, reject) => {
        const server = net.createServer().once("error", reject);
        server.listen(0, () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

// A folder for each device, and in it a variable for each register.
function nodeset() {
    const [organizes, component, type] = ["i=35", "i=47", "i=40"];
    const node = (tag, id, more, references) =>
        `<${tag} NodeId="ns=1;s=${id}" BrowseName="1:${id}"${more}><DisplayName>${id}</DisplayName><References>` +
        references.map(([kind, to, back]) =>
            `<Reference ReferenceType="${kind}"${back ? ' IsForward="false"' : ""}>${to}</Reference>`).join("") +
        `</References></${tag}>`;
    const nodes = [];
    for (let device = 0; device < devices.length; device++) {
        nodes.push(node("UAObject", `d${device}`, "", [[type, "i=61"], [organizes, "i=85", true]]));
        for (let register = 0; register < registers; register++) {
            const more = ` ParentNodeId="ns=1;s=d${device}" DataType="i=5" MinimumSamplingInterval="0"`;
            nodes.push(node("UAVariable", `d${device}/${register}`, more,
                [[type, "i=63"], [component, `ns=1;s=d${device}`, true]]));
        }
    }
    return '<?xml version="1.0" encoding="utf-8"?><UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">' +
        `<NamespaceUris><Uri>${URI}</Uri></NamespaceUris>` +
        `<Models><Model ModelUri="${URI}" Version="1.0.0" PublicationDate="2026-01-01T00:00:00Z">` +
        '<RequiredModel ModelUri="http://opcfoundation.org/UA/"/></Model></Models>' + nodes.join("\n") + "</UANodeSet>";
}

// Code of the function nodes. `{device}` and `{first}` are replaced.
const CHANGES = `
const namespace = global.get("namespace")();
if (namespace === undefined) return null;
const last = context.get("last") || [];
const changes = [];
msg.payload.forEach((value, at) => {
    if (last[at] !== value) {
        changes.push({ messageType: "Variable", namespace, variableName: "d{device}/" + ({first} + at),
            datatype: "UInt16", variableValue: value });
    }
});
context.set("last", msg.payload);
return changes.length > 0 ? { payload: changes } : null;`;

function flow(port, nodesets) {
    const nodes = [
        { id: "tab", type: "tab", label: "gateway" },
        {
            id: "server", z: "tab", type: "OpcUa-Server", name: "", port: String(port), endpoint: "", usersFile: "",
            nodesetDir: nodesets, autoAcceptUnknownCertificate: true, allowAnonymous: true, endpointNone: true,
            endpointSign: false, endpointSignEncrypt: false, endpointBasic128Rsa15: false, endpointBasic256: false,
            endpointBasic256Sha256: false, registerToDiscovery: false, constructDefaultAddressSpace: false,
            maxSessions: 100, maxConnectionsPerEndpoint: 100, maxNodesPerRead: 0, maxNodesPerBrowse: 0,
            maxMonitoredItemsPerCall: 0, maxNodesPerWrite: 0, maxNodesPerMethodCall: 0, maxNodesPerRegisterNodes: 0,
            maxNodesPerNodeManagement: 0, maxNodesPerHistoryReadData: 0, maxNodesPerHistoryReadEvents: 0,
            maxNodesPerHistoryUpdateData: 0, maxNodesPerHistoryUpdateEvents: 0,
            maxNodesPerTranslateBrowsePathsToNodeIds: 0, maxMessageSize: 1 << 26, maxBufferSize: 1 << 16, wires: [[]],
        },
    ];
    devices.forEach((address, device) => {
        const [host, devicePort] = [address.slice(0, address.lastIndexOf(":")), address.slice(address.lastIndexOf(":") + 1)];
        nodes.push({
            id: `client${device}`, type: "modbus-client", name: "", clienttype: "tcp", bufferCommands: true,
            stateLogEnabled: false, queueLogEnabled: false, failureLogEnabled: false, tcpHost: host,
            tcpPort: devicePort, tcpType: "DEFAULT", unit_id: 1, commandDelay: 1, clientTimeout: 1000,
            reconnectOnTimeout: true, reconnectTimeout: 2000, parallelUnitIdsAllowed: true,
        });
        for (let first = 0; first < registers; first += BLOCK) {
            const [read, changes] = [`read${device}-${first}`, `changes${device}-${first}`];
            nodes.push({
                id: read, z: "tab", type: "modbus-read", name: "", topic: "", showStatusActivities: false, logIOActivities: false,
                showErrors: false, unitid: "1", dataType: "HoldingRegister", adr: String(first),
                quantity: String(Math.min(BLOCK, registers - first)), rate: String(update), rateUnit: "ms",
                delayOnStart: false, startDelayTime: "", server: `client${device}`, useIOFile: false, ioFile: "",
                useIOForPayload: false, emptyMsgOnFail: false, wires: [[changes], []],
            });
            nodes.push({
                id: changes, z: "tab", type: "function", name: "", outputs: 1, timeout: 0, noerr: 0, initialize: "",
                finalize: "", libs: [], wires: [["server"]],
                func: CHANGES.replace("{device}", String(device)).replace("{first}", String(first)),
            });
        }
    });
    return nodes;
}

async function main() {
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => leave(0));
    if (process.argv.includes("--exit-with-stdin")) {
        process.stdin.resume();
        process.stdin.on("end", () => leave(0));
        process.stdin.on("error", () => leave(0));
    }
    const port = Number(option("port", "4840")) || (await freePort());
    const nodesets = path.join(folder, "nodesets");
    fs.mkdirSync(nodesets);
    fs.writeFileSync(path.join(nodesets, "gateway.xml"), nodeset());
    fs.writeFileSync(path.join(folder, "flows.json"), JSON.stringify(flow(port, nodesets)));

    // Standard output reports that the server listens; everything else goes to standard error.
    console.log = console.info = console.debug = console.error;
    const RED = require("node-red");
    let space;
    RED.init(http.createServer(), {
        userDir: folder,
        flowFile: "flows.json",
        httpAdminRoot: false,
        httpNodeRoot: false,
        disableEditor: true,
        functionGlobalContext: { namespace: () => space },
        logging: { console: { level: "warn", metrics: false, audit: false } },
        credentialSecret: false,
        telemetry: { enabled: false, updateNotification: false },
    });
    await RED.start();
    // The node of the server starts by itself and does not report when it listens.
    for (;;) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        const server = RED.nodes.getNode("server")?.server;
        const found = server?.engine?.addressSpace?.getNamespaceIndex(URI) ?? -1;
        const listens = found >= 0 && (await new Promise((resolve) => {
            const socket = net.connect(port, bind, () => {
                socket.destroy();
                resolve(true);
            }).once("error", () => resolve(false));
        }));
        if (listens) {
            space = found;
            break;
        }
    }
    process.stdout.write(`NAMESPACE ${space}\nREADY opc.tcp://${bind}:${port}\n`);
}

main().catch((error) => {
    console.error(error);
    leave(1);
});
