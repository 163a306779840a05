# Writes OUT, the values that cli/verbs/setup/build_info.cpp includes, if they have changed. Runs at every build, so that
# `muster version` shows the revision it was built from and nothing else is recompiled.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY "${SOURCE}"
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision "unknown")
endif()
set(text "#define MUSTER_REVISION \"${revision}\"\n#define MUSTER_BUILD_TYPE \"${TYPE}\"\n#define MUSTER_COMPILER \"${COMPILER}\"\n#define MUSTER_LIBRARIES \"${LIBRARIES}\"\n")
set(before "")
if(EXISTS "${OUT}")
  file(READ "${OUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUT}" "${text}")
endif()
