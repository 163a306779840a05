// Terminal: gives a session's command a terminal (`muster exec -t`).
//
//   keeper ── pipe ──▶ muster-terminal ── pty ──▶ command
//                      output file ◀──┘  ◀──┘
//
// It is this executable under another name, started in place of the command: with the command's
// user, environment and limits. So the pty lives as long as the command, whatever happens to the
// agent, and the keeper deals only with pipes and files.
//
// It leads the terminal's session, and the command is its child, in its own foreground process
// group. So whatever the command starts is in the session that the keeper knows, and the kernel
// hangs up the terminal when this process ends.
#pragma once

namespace muster::keeper {

constexpr const char* kTerminalName = "muster-terminal";  // argv[0]; the command follows
// What a child of the keeper executes to become one: its own executable, even where the user cannot
// reach its path.
constexpr const char* kOwnProgram = "/proc/self/exe";

// Returns the command's exit code, 128+S after signal S; 126 if it has no terminal.
int terminal_main(char** argv);

}  // namespace muster::keeper
