// MUSTER_IN_CHILD: marks a function that runs between clone and exec, where a child may share the
// keeper's memory, on a stack that sanitizers do not know. It makes system calls only.
#pragma once

#define MUSTER_IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread")))
