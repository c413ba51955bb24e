/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "testnodes.h"

#include <open62541/common.h>
#include <math.h>
#include <string.h>

const char *const tn_names[TN_TYPES] = {
    "Boolean",    "SByte",      "Byte",       "Int16",         "UInt16",       "Int32",
    "UInt32",     "Int64",      "UInt64",     "Float",         "Double",       "String",
    "DateTime",   "Guid",       "ByteString", "XmlElement",    "NodeId",       "ExpandedNodeId",
    "StatusCode", "QualifiedName", "LocalizedText", "Variant"};

const UA_DataType *tn_type(size_t type) {
    /* The library numbers the built-in types in the order of the specification, and so do we. */
    return type == TN_VARIANT ? NULL : &UA_TYPES[type];
}

UA_NodeId tn_data_type(size_t type) {
    return type == TN_VARIANT ? UA_NODEID_NUMERIC(0, UA_NS0ID_BASEDATATYPE)
                              : tn_type(type)->typeId;
}

static UA_DateTime date(UA_UInt16 year, UA_UInt16 month, UA_UInt16 day, UA_UInt16 hour,
                        UA_UInt16 min, UA_UInt16 sec, UA_UInt16 milli, UA_UInt16 micro) {
    UA_DateTimeStruct d = {0};
    d.year = (UA_Int16)year;
    d.month = month;
    d.day = day;
    d.hour = hour;
    d.min = min;
    d.sec = sec;
    d.milliSec = milli;
    d.microSec = micro;
    return UA_DateTime_fromStruct(d);
}

static UA_Guid guid(UA_Byte last) {
    UA_Guid g = {0x72962b91, 0xfa75, 0x4ae6, {0x8d, 0x28, 0xb4, 0x04, 0xdc, 0x7d, 0xaf, last}};
    return g;
}

static void copy_scalar(UA_Variant *out, const void *p, size_t type) {
    UA_Variant_init(out);
    UA_Variant_setScalarCopy(out, p, &UA_TYPES[type]);
}

#define SCALAR(TYPE, INDEX, ...)                                                                   \
    do {                                                                                           \
        TYPE v = __VA_ARGS__;                                                                      \
        copy_scalar(out, &v, INDEX);                                                               \
    } while(0)

void tn_scalar(size_t type, UA_UInt16 ns, UA_Variant *out) {
    static UA_Byte bytes[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
    UA_Variant_init(out);
    switch(type) {
    case 0: SCALAR(UA_Boolean, type, true); break;
    case 1: SCALAR(UA_SByte, type, -12); break;
    case 2: SCALAR(UA_Byte, type, 200); break;
    case 3: SCALAR(UA_Int16, type, -12345); break;
    case 4: SCALAR(UA_UInt16, type, 54321); break;
    case 5: SCALAR(UA_Int32, type, -123456789); break;
    case 6: SCALAR(UA_UInt32, type, 3123456789u); break;
    case 7: SCALAR(UA_Int64, type, -1234567890123456789ll); break;
    case 8: SCALAR(UA_UInt64, type, 12345678901234567890ull); break;
    case 9: SCALAR(UA_Float, type, 3.5f); break;
    case 10: SCALAR(UA_Double, type, 2.718281828459045); break;
    case 11: SCALAR(UA_String, type, UA_STRING("Grüße, Welt! ☃")); break;
    case 12: SCALAR(UA_DateTime, type, date(2024, 2, 29, 12, 34, 56, 789, 12)); break;
    case 13: SCALAR(UA_Guid, type, guid(0x63)); break;
    case 14: SCALAR(UA_ByteString, type, {sizeof bytes, bytes}); break;
    case 15: SCALAR(UA_XmlElement, type, UA_STRING("<taktwerk>1</taktwerk>")); break;
    case 16: SCALAR(UA_NodeId, type, UA_NODEID_STRING(ns, "the.answer")); break;
    case 17: {
        UA_ExpandedNodeId v = UA_EXPANDEDNODEID_NUMERIC(0, 77);
        v.serverIndex = 1;
        v.namespaceUri = UA_STRING("urn:example:remote");
        copy_scalar(out, &v, type);
        break;
    }
    case 18: SCALAR(UA_StatusCode, type, UA_STATUSCODE_UNCERTAININITIALVALUE); break;
    case 19: SCALAR(UA_QualifiedName, type, UA_QUALIFIEDNAME(ns, "qualified")); break;
    case 20: SCALAR(UA_LocalizedText, type, UA_LOCALIZEDTEXT("en", "localized")); break;
    case TN_VARIANT: SCALAR(UA_String, UA_TYPES_STRING, UA_STRING("any")); break;
    default: break;
    }
}

static void copy_array(UA_Variant *out, const void *p, size_t type) {
    UA_Variant_init(out);
    UA_Variant_setArrayCopy(out, p, TN_ELEMENTS, &UA_TYPES[type]);
}

#define ARRAY(TYPE, ...)                                                                           \
    do {                                                                                           \
        TYPE v[TN_ELEMENTS] = {__VA_ARGS__};                                                       \
        copy_array(out, v, type);                                                                  \
    } while(0)

void tn_array(size_t type, UA_UInt16 ns, UA_Variant *out) {
    UA_Variant_init(out);
    switch(type) {
    case 0: ARRAY(UA_Boolean, true, false, true, false, true); break;
    case 1: ARRAY(UA_SByte, -128, -1, 0, 1, 127); break;
    case 2: ARRAY(UA_Byte, 0, 1, 127, 128, 255); break;
    case 3: ARRAY(UA_Int16, -32768, -1, 0, 1, 32767); break;
    case 4: ARRAY(UA_UInt16, 0, 1, 32767, 32768, 65535); break;
    case 5: ARRAY(UA_Int32, INT32_MIN, -1, 0, 1, INT32_MAX); break;
    case 6: ARRAY(UA_UInt32, 0, 1, 2147483647u, 2147483648u, 4294967295u); break;
    case 7: ARRAY(UA_Int64, INT64_MIN, -1, 0, 1, INT64_MAX); break;
    case 8: ARRAY(UA_UInt64, 0, 1, INT64_MAX, (UA_UInt64)INT64_MAX + 1, UINT64_MAX); break;
    case 9: ARRAY(UA_Float, -1.5f, 0.0f, 0.25f, 1.5f, 65536.0f); break;
    case 10: ARRAY(UA_Double, -1.5, 0.0, 0.25, 1.5, 1e300); break;
    case 11:
        ARRAY(UA_String, UA_STRING("one"), UA_STRING("zwei"), UA_STRING("très"),
              UA_STRING("четыре"), UA_STRING("五"));
        break;
    case 12: {
        UA_DateTime v[TN_ELEMENTS];
        for(UA_UInt16 i = 0; i < TN_ELEMENTS; i++)
            v[i] = date(2024, 1, 1, i, 0, 0, 0, 0);
        copy_array(out, v, type);
        break;
    }
    case 13: ARRAY(UA_Guid, guid(0x60), guid(0x61), guid(0x62), guid(0x63), guid(0x64)); break;
    case 14: {
        UA_Byte raw[TN_ELEMENTS][TN_ELEMENTS];
        UA_ByteString v[TN_ELEMENTS];
        for(UA_Byte i = 0; i < TN_ELEMENTS; i++) {
            memset(raw[i], i, sizeof raw[i]);
            v[i].length = (size_t)i + 1;
            v[i].data = raw[i];
        }
        copy_array(out, v, type);
        break;
    }
    case 15:
        ARRAY(UA_XmlElement, UA_STRING("<v>0</v>"), UA_STRING("<v>1</v>"), UA_STRING("<v>2</v>"),
              UA_STRING("<v>3</v>"), UA_STRING("<v>4</v>"));
        break;
    case 16: {
        UA_Byte opaque[] = {0x01, 0x02};
        UA_NodeId b = UA_NODEID_NULL;
        b.namespaceIndex = ns;
        b.identifierType = UA_NODEIDTYPE_BYTESTRING;
        b.identifier.byteString.length = sizeof opaque;
        b.identifier.byteString.data = opaque;
        ARRAY(UA_NodeId, UA_NODEID_NUMERIC(0, 84), UA_NODEID_NUMERIC(ns, 1000),
              UA_NODEID_STRING(ns, "the.answer"), UA_NODEID_GUID(ns, guid(0x63)), b);
        break;
    }
    case 17: {
        UA_ExpandedNodeId v[TN_ELEMENTS] = {
            UA_EXPANDEDNODEID_NUMERIC(0, 84), UA_EXPANDEDNODEID_STRING(ns, "the.answer"),
            UA_EXPANDEDNODEID_NUMERIC(0, 77), UA_EXPANDEDNODEID_STRING(0, "far"),
            UA_EXPANDEDNODEID_NUMERIC(0, 5)};
        v[2].namespaceUri = UA_STRING("urn:example:remote");
        v[3].namespaceUri = UA_STRING("urn:example:remote");
        v[3].serverIndex = 1;
        v[4].serverIndex = 2;
        copy_array(out, v, type);
        break;
    }
    case 18:
        ARRAY(UA_StatusCode, UA_STATUSCODE_GOOD, UA_STATUSCODE_UNCERTAIN, UA_STATUSCODE_BAD,
              UA_STATUSCODE_BADOUTOFSERVICE, UA_STATUSCODE_UNCERTAININITIALVALUE);
        break;
    case 19:
        ARRAY(UA_QualifiedName, UA_QUALIFIEDNAME(ns, "q0"), UA_QUALIFIEDNAME(ns, "q1"),
              UA_QUALIFIEDNAME(ns, "q2"), UA_QUALIFIEDNAME(ns, "q3"), UA_QUALIFIEDNAME(0, "q4"));
        break;
    case 20: {
        UA_LocalizedText last = {UA_STRING_NULL, UA_STRING("t4")};
        ARRAY(UA_LocalizedText, UA_LOCALIZEDTEXT("en", "t0"), UA_LOCALIZEDTEXT("de", "t1"),
              UA_LOCALIZEDTEXT("en", "t2"), UA_LOCALIZEDTEXT("de", "t3"), last);
        break;
    }
    case TN_VARIANT: {
        UA_Boolean a = true;
        UA_Int32 b = -7;
        UA_Double c = 2.5;
        UA_String d = UA_STRING("mixed");
        UA_Byte e = 9;
        UA_Variant v[TN_ELEMENTS];
        UA_Variant_setScalar(&v[0], &a, &UA_TYPES[UA_TYPES_BOOLEAN]);
        UA_Variant_setScalar(&v[1], &b, &UA_TYPES[UA_TYPES_INT32]);
        UA_Variant_setScalar(&v[2], &c, &UA_TYPES[UA_TYPES_DOUBLE]);
        UA_Variant_setScalar(&v[3], &d, &UA_TYPES[UA_TYPES_STRING]);
        UA_Variant_setScalar(&v[4], &e, &UA_TYPES[UA_TYPES_BYTE]);
        copy_array(out, v, UA_TYPES_VARIANT);
        break;
    }
    default: break;
    }
}

void tn_matrix(UA_Variant *out) {
    UA_Double v[6] = {1, 2, 3, 4, 5, 6};
    UA_UInt32 dims[2] = {2, 3};
    UA_Variant_init(out);
    UA_Variant_setArrayCopy(out, v, 6, &UA_TYPES[UA_TYPES_DOUBLE]);
    UA_Array_copy(dims, 2, (void **)&out->arrayDimensions, &UA_TYPES[UA_TYPES_UINT32]);
    out->arrayDimensionsSize = 2;
}

void tn_range(UA_Variant *out) {
    SCALAR(UA_Range, UA_TYPES_RANGE, {0.0, 100.0});
}

void tn_unit(UA_Variant *out) {
    UA_EUInformation u;
    UA_EUInformation_init(&u);
    u.namespaceUri = UA_STRING("http://www.opcfoundation.org/UA/units/un/cefact");
    u.unitId = 4408652;
    u.displayName = UA_LOCALIZEDTEXT("en", "°C");
    u.description = UA_LOCALIZEDTEXT("en", "degree Celsius");
    copy_scalar(out, &u, UA_TYPES_EUINFORMATION);
}

void tn_element(const UA_Variant *array, size_t i, UA_Variant *out) {
    const void *p = (const char *)array->data + i * array->type->memSize;
    if(array->type == &UA_TYPES[UA_TYPES_VARIANT]) {
        UA_Variant_copy(p, out);
        return;
    }
    UA_Variant_init(out);
    UA_Variant_setScalarCopy(out, p, array->type);
}

void tn_reversed(const UA_Variant *array, UA_Variant *out) {
    UA_Variant_init(out);
    size_t n = array->arrayLength, size = array->type->memSize;
    char *p = UA_Array_new(n, array->type);
    for(size_t i = 0; i < n; i++)
        UA_copy((const char *)array->data + (n - 1 - i) * size, p + i * size, array->type);
    UA_Variant_setArray(out, p, n, array->type);
}
