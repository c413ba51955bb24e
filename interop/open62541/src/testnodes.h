/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The values of the interop test node set (TESTNODES.md), as data: the server fills its address
 * space from them and the client checks what it reads against them. */
#ifndef PEER_TESTNODES_H
#define PEER_TESTNODES_H

#include <open62541/types.h>

#define TN_URI "urn:taktwerk:interop"
#define TN_TYPES 22
#define TN_ELEMENTS 5
#define TN_VARIANT (TN_TYPES - 1)

/* The last part of the node id, as in scalar/<name> and array/<name>. */
extern const char *const tn_names[TN_TYPES];

/* NULL for the last entry, Variant. */
const UA_DataType *tn_type(size_t type);
/* The DataType attribute: the built-in type, or BaseDataType for Variant. */
UA_NodeId tn_data_type(size_t type);

/* `ns` is the index of TN_URI. All results are deep copies owned by the caller. */
void tn_scalar(size_t type, UA_UInt16 ns, UA_Variant *out);
void tn_array(size_t type, UA_UInt16 ns, UA_Variant *out);
void tn_matrix(UA_Variant *out);
void tn_range(UA_Variant *out);
void tn_unit(UA_Variant *out);

/* Element `i` of an array as a scalar of its own. */
void tn_element(const UA_Variant *array, size_t i, UA_Variant *out);
/* The same array from its last element to its first. */
void tn_reversed(const UA_Variant *array, UA_Variant *out);

#endif
