// The supervisor's part in passing input to processes. It buffers none: the process's pipe holds
// what was taken, and the rest stays with the agent.
#include "keeper/kernel/tell.hpp"
#include "keeper/loop/supervisor.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {

void Supervisor::on_input(Reader in) {
  const Key key = Key::read(in);
  const auto offset = in.num<uint64_t>();
  const bool eof = in.num<uint8_t>() != 0;
  const std::string_view data = in.text();
  if (!in.ok()) return;
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return tell_taken(key, 0, true);
  Process& process = *found->second;
  if (process.state == State::starting) {
    process.input_waits = true;
    return;
  }
  const uint64_t before = process.taken;
  bool all = false;
  if (process.input && offset <= before) {
    all = take_input(process, data.substr(std::min<uint64_t>(before - offset, data.size())));
    if (all && eof && offset + data.size() == process.taken) close_input(process);
  }
  const bool full = process.input && offset <= before && !all;
  if (!full || process.taken > before) return tell_taken(key, process.taken, !process.input);
  process.input_waits = true;
  epoll_event event{};
  event.events = EPOLLOUT | EPOLLONESHOT;
  event.data.u64 = process.entry;
  const int operation = std::exchange(process.input_watched, true) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(epoll_fd_, operation, process.input.get(), &event) < 0) tell_errno("epoll_ctl");
}

// Whether all of it was taken. Closes the input if nobody reads it anymore.
bool Supervisor::take_input(Process& process, std::string_view data) {
  while (!data.empty()) {
    const ssize_t size = write(process.input.get(), data.data(), data.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return false;
    if (size < 0) {
      close_input(process);
      return false;
    }
    process.taken += static_cast<uint64_t>(size);
    data.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

// There is room, or nobody reads it anymore, which the agent learns when it sends the input again.
void Supervisor::on_room_for_input(uint64_t entry) {
  Process* const process = find(entry);
  if (process == nullptr || !std::exchange(process->input_waits, false)) return;
  tell_taken(process->key, process->taken, !process->input);
}

void Supervisor::close_input(Process& process) {
  if (std::exchange(process.input_watched, false))
    epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, process.input.get(), nullptr);
  process.input = Fd();
  if (std::exchange(process.input_waits, false)) tell_taken(process.key, process.taken, true);
}

void Supervisor::tell_taken(const Key& key, uint64_t taken, bool closed) {
  if (!greeted_) return;
  Frame frame(out_, Type::taken);
  key.write(frame);
  frame.num(taken).num(uint8_t{closed});
}

}  // namespace muster::keeper
