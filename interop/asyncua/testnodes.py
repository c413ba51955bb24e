# SPDX-License-Identifier: MIT OR Apache-2.0
"""The values of the interop test node set (TESTNODES.md), shared by server and client."""

import dataclasses
import uuid
from datetime import datetime, timedelta, timezone

from asyncua import ua

URI = "urn:taktwerk:interop"
TYPES = [
    "Boolean", "SByte", "Byte", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Float",
    "Double", "String", "DateTime", "Guid", "ByteString", "XmlElement", "NodeId",
    "ExpandedNodeId", "StatusCode", "QualifiedName", "LocalizedText", "Variant",
]  # fmt: skip


def variant_type(name):
    return ua.VariantType[name]


def data_type(name):
    return ua.NodeId(24 if name == "Variant" else TYPES.index(name) + 1)


def guid(last):
    return uuid.UUID(f"72962b91-fa75-4ae6-8d28-b404dc7daf{last:02x}")


def node_id(ident, ns, kind=None):
    return ua.NodeId(ident, ns, kind) if kind else ua.NodeId(ident, ns)


def expanded(ident, ns=0, uri=None, server=0):
    kind = ua.NodeIdType.String if isinstance(ident, str) else ua.NodeIdType.Numeric
    return ua.ExpandedNodeId(ident, ns, kind, NamespaceUri=uri, ServerIndex=server)


def scalar_value(name, ns):
    return {
        "Boolean": True, "SByte": -12, "Byte": 200, "Int16": -12345, "UInt16": 54321,
        "Int32": -123456789, "UInt32": 3123456789, "Int64": -1234567890123456789,
        "UInt64": 12345678901234567890, "Float": 3.5, "Double": 2.718281828459045,
        "String": "Grüße, Welt! ☃",
        "DateTime": datetime(2024, 2, 29, 12, 34, 56, 789012, timezone.utc),
        "Guid": guid(0x63), "ByteString": bytes([0, 1, 0x7F, 0x80, 0xFE, 0xFF]),
        "XmlElement": ua.XmlElement("<taktwerk>1</taktwerk>"),
        "NodeId": ua.NodeId("the.answer", ns),
        "ExpandedNodeId": expanded(77, uri="urn:example:remote", server=1),
        "StatusCode": ua.StatusCode(0x40920000),
        "QualifiedName": ua.QualifiedName("qualified", ns),
        "LocalizedText": ua.LocalizedText("localized", "en"),
    }[name]  # fmt: skip


def array_values(name, ns):
    def signed(bits):
        return [-(1 << bits - 1), -1, 0, 1, (1 << bits - 1) - 1]

    def unsigned(bits):
        return [0, 1, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1]

    begin = datetime(2024, 1, 1, tzinfo=timezone.utc)
    return {
        "Boolean": [True, False, True, False, True],
        "SByte": signed(8), "Byte": unsigned(8), "Int16": signed(16), "UInt16": unsigned(16),
        "Int32": signed(32), "UInt32": unsigned(32), "Int64": signed(64), "UInt64": unsigned(64),
        "Float": [-1.5, 0.0, 0.25, 1.5, 65536.0], "Double": [-1.5, 0.0, 0.25, 1.5, 1e300],
        "String": ["one", "zwei", "très", "четыре", "五"],
        "DateTime": [begin + timedelta(hours=i) for i in range(5)],
        "Guid": [guid(0x60 + i) for i in range(5)],
        "ByteString": [bytes([i] * (i + 1)) for i in range(5)],
        "XmlElement": [ua.XmlElement(f"<v>{i}</v>") for i in range(5)],
        "NodeId": [
            ua.NodeId(84, 0), ua.NodeId(1000, ns), ua.NodeId("the.answer", ns),
            ua.NodeId(guid(0x63), ns), ua.NodeId(bytes([1, 2]), ns),
        ],
        "ExpandedNodeId": [
            expanded(84), expanded("the.answer", ns), expanded(77, uri="urn:example:remote"),
            expanded("far", uri="urn:example:remote", server=1), expanded(5, server=2),
        ],
        "StatusCode": [
            ua.StatusCode(c) for c in (0, 0x40000000, 0x80000000, 0x808D0000, 0x40920000)
        ],
        "QualifiedName": [ua.QualifiedName(f"q{i}", ns if i < 4 else 0) for i in range(5)],
        "LocalizedText": [
            ua.LocalizedText("t0", "en"), ua.LocalizedText("t1", "de"),
            ua.LocalizedText("t2", "en"), ua.LocalizedText("t3", "de"), ua.LocalizedText("t4"),
        ],
        "Variant": [
            ua.Variant(True, ua.VariantType.Boolean), ua.Variant(-7, ua.VariantType.Int32),
            ua.Variant(2.5, ua.VariantType.Double), ua.Variant("mixed", ua.VariantType.String),
            ua.Variant(9, ua.VariantType.Byte),
        ],
    }[name]  # fmt: skip


def scalar(name, ns):
    if name == "Variant":
        return ua.Variant("any", ua.VariantType.String)
    return ua.Variant(scalar_value(name, ns), variant_type(name))


def array(name, ns):
    return ua.Variant(array_values(name, ns), variant_type(name))


def matrix():
    return ua.Variant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], ua.VariantType.Double)


def range_():
    return ua.Variant(ua.Range(Low=0.0, High=100.0), ua.VariantType.ExtensionObject)


def unit():
    value = ua.EUInformation(
        NamespaceUri="http://www.opcfoundation.org/UA/units/un/cefact",
        UnitId=4408652,
        DisplayName=ua.LocalizedText("°C", "en"),
        Description=ua.LocalizedText("degree Celsius", "en"),
    )
    return ua.Variant(value, ua.VariantType.ExtensionObject)


def same(a, b):
    """Equality that also distinguishes an ExpandedNodeId with a URI from one without."""
    if isinstance(a, ua.Variant) and isinstance(b, ua.Variant):
        return a.VariantType == b.VariantType and same(a.Value, b.Value)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, ua.ExpandedNodeId) and isinstance(b, ua.ExpandedNodeId):
        fields = ("Identifier", "NamespaceIndex", "NamespaceUri", "ServerIndex")
        return all((getattr(a, f) or 0) == (getattr(b, f) or 0) for f in fields)
    if isinstance(a, datetime) and isinstance(b, datetime):
        return _utc(a) == _utc(b)
    if dataclasses.is_dataclass(a) and type(a) is type(b) and not isinstance(a, ua.NodeId):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return a == b


def _utc(t):
    return t if t.tzinfo else t.replace(tzinfo=timezone.utc)
