#include "agent/link/template_store.hpp"

#include "agent/link/wire.hpp"
#include "base/files/whole_write.hpp"

#include <capnp/serialize.h>
#include <kj/io.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace muster::agent {

namespace {

std::string name_of(const std::string& job_uid, int64_t generation) {
  return job_uid + "." + std::to_string(generation);
}

}  // namespace

Status TemplateStore::keep(const core::node::PodTemplatePtr& job) {
  std::string name = name_of(job->job_uid, job->generation);
  Holders& holders = kept_[name];
  std::erase_if(holders, [](const auto& holder) { return holder.expired(); });
  bool there = false, held = false;
  for (const auto& holder : holders) {
    core::node::PodTemplatePtr one = holder.lock();
    there = there || one != nullptr;
    held = held || one == job;
  }
  if (!held) holders.push_back(job);
  if (there) return Nothing{};
  auto failed = [this, &name](const char* what) {
    std::string why =
        std::string("cannot ") + what + " " + path(name) + ": " + std::strerror(errno);
    kept_.erase(name);
    return Error{Errc::unavailable, why};
  };
  if (job->job_uid.empty() || job->job_uid.find('/') != std::string::npos) {
    errno = EINVAL;
    return failed("name");
  }
  if (mkdir(dir_.c_str(), 0700) != 0 && errno != EEXIST) return failed("make the folder of");
  std::string fresh = path(".new");
  unlink(fresh.c_str());  // left by an earlier agent, or a planted link
  kj::AutoCloseFd fd(
      open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return failed("write");
  if (!write_whole(fd.get(), job->wire)) return failed("write");
  if (rename(fresh.c_str(), path(name).c_str()) != 0) return failed("write");
  if (kept_.size() > drop_at_) {
    drop_unheld();
    drop_at_ = std::max<size_t>(64, kept_.size() * 2);
  }
  return Nothing{};
}

core::node::PodTemplatePtr TemplateStore::load(const std::string& job_uid, int64_t generation) {
  std::string name = name_of(job_uid, generation);
  Holders& holders = kept_[name];
  for (const auto& holder : holders) {
    if (auto job = holder.lock()) return job;
  }
  std::ifstream in(path(name), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  std::memcpy(words.begin(), bytes.data(), words.asBytes().size());
  core::node::PodTemplatePtr job;
  auto unreadable = kj::runCatchingExceptions([&] {
    capnp::FlatArrayMessageReader message(words);
    job = std::make_shared<const core::node::PodTemplate>(
        read_template(message.getRoot<wire::PodTemplate>(), extras_));
  });
  if (unreadable != nullptr || job->job_uid != job_uid || job->generation != generation) {
    return nullptr;
  }
  holders.push_back(job);
  return job;
}

void TemplateStore::drop_unheld() {
  for (auto one = kept_.begin(); one != kept_.end();) {
    std::erase_if(one->second, [](const auto& holder) { return holder.expired(); });
    if (one->second.empty()) {
      unlink(path(one->first).c_str());
      one = kept_.erase(one);
    } else {
      ++one;
    }
  }
}

void TemplateStore::sweep() {
  drop_unheld();
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(dir_, error)) {
    if (!kept_.contains(file.path().filename().string())) unlink(file.path().c_str());
  }
}

}  // namespace muster::agent
