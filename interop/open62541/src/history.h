/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef PEER_HISTORY_H
#define PEER_HISTORY_H

#include <open62541/server.h>

/* Before the server is created. */
void history_configure(UA_ServerConfig *config);
/* Adds the variable. */
UA_StatusCode history_add(UA_Server *server, unsigned values);

#endif
