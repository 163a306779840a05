#include "trust/munge/credential.hpp"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <munge.h>

namespace muster::munge {
namespace {

constexpr char kLibrary[] = "libmunge.so.2";

struct Library {
  decltype(&munge_encode) encode = nullptr;
  decltype(&munge_decode) decode = nullptr;
  decltype(&munge_strerror) strerror = nullptr;
  decltype(&munge_ctx_create) create = nullptr;
  decltype(&munge_ctx_destroy) destroy = nullptr;
  decltype(&munge_ctx_strerror) ctx_strerror = nullptr;
  decltype(&munge_ctx_get) get = nullptr;
  decltype(&munge_ctx_set) set = nullptr;
  std::string wrong;  // empty: it is loaded

  Library() {
    void* handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    const auto find = [&](const char* name, auto& function) {
      if (handle == nullptr) return;
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr) wrong = std::string(kLibrary) + " has no " + name;
    };
    if (handle == nullptr) {
      const char* why = dlerror();
      wrong = why != nullptr ? why : std::string(kLibrary) + " cannot be loaded";
    }
    find("munge_encode", encode);
    find("munge_decode", decode);
    find("munge_strerror", strerror);
    find("munge_ctx_create", create);
    find("munge_ctx_destroy", destroy);
    find("munge_ctx_strerror", ctx_strerror);
    find("munge_ctx_get", get);
    find("munge_ctx_set", set);
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

using Context = std::unique_ptr<std::remove_pointer_t<munge_ctx_t>, decltype(&munge_ctx_destroy)>;

// A context for the daemon at this socket; null: out of memory.
Context context(const Library& munge, const std::string& socket) {
  Context made(munge.create(), munge.destroy);
  if (made && !socket.empty() &&
      munge.set(made.get(), MUNGE_OPT_SOCKET, socket.c_str()) != EMUNGE_SUCCESS)
    made.reset();
  return made;
}

// Whether the daemon failed, rather than the credential.
bool of_daemon(munge_err_t error) {
  return error == EMUNGE_SNAFU || error == EMUNGE_NO_MEMORY || error == EMUNGE_SOCKET ||
         error == EMUNGE_TIMEOUT;
}

std::string reason(const Library& munge, munge_ctx_t ctx, munge_err_t error) {
  const char* detailed = munge.ctx_strerror(ctx);
  const char* text = detailed != nullptr ? detailed : munge.strerror(error);
  return text != nullptr ? text : "error " + std::to_string(error);
}

Error no_context() {
  return {Errc::unavailable, "munge: out of memory", {}};
}

}  // namespace

Status load() {
  const Library& munge = library();
  if (munge.wrong.empty()) return Nothing{};
  return Error{Errc::unavailable, munge.wrong, {}};
}

Result<std::string> encode(const std::string& socket, uid_t reader, const std::string& payload) {
  if (Status ok = load(); !ok) return ok.error();
  const Library& munge = library();
  const Context ctx = context(munge, socket);
  if (!ctx || munge.set(ctx.get(), MUNGE_OPT_UID_RESTRICTION, reader) != EMUNGE_SUCCESS)
    return no_context();
  char* text = nullptr;
  const munge_err_t error =
      munge.encode(&text, ctx.get(), payload.data(), static_cast<int>(payload.size()));
  const std::unique_ptr<char, decltype(&std::free)> owned(text, std::free);
  if (error != EMUNGE_SUCCESS || text == nullptr)
    return Error{Errc::unavailable, reason(munge, ctx.get(), error), {}};
  return std::string(text);
}

Result<Decoded> decode(const std::string& socket, const std::string& credential) {
  if (Status ok = load(); !ok) return ok.error();
  const Library& munge = library();
  const Context ctx = context(munge, socket);
  if (!ctx) return no_context();
  Decoded decoded;
  void* payload = nullptr;
  int size = 0;
  gid_t gid = 0;
  const munge_err_t error =
      munge.decode(credential.c_str(), ctx.get(), &payload, &size, &decoded.uid, &gid);
  const std::unique_ptr<void, decltype(&std::free)> owned(payload, std::free);  // also on errors
  if (error != EMUNGE_SUCCESS)
    return Error{
        of_daemon(error) ? Errc::unavailable : Errc::invalid, reason(munge, ctx.get(), error), {}};
  if (payload != nullptr && size > 0)
    decoded.payload.assign(static_cast<const char*>(payload), static_cast<size_t>(size));
  time_t made = 0;
  int life = 0;
  if (munge.get(ctx.get(), MUNGE_OPT_ENCODE_TIME, &made) != EMUNGE_SUCCESS ||
      munge.get(ctx.get(), MUNGE_OPT_TTL, &life) != EMUNGE_SUCCESS)
    return Error{Errc::unavailable, reason(munge, ctx.get(), EMUNGE_SNAFU), {}};
  decoded.made_ms = Millis{made} * 1000;
  decoded.life_ms = Millis{life} * 1000;
  return decoded;
}

}  // namespace muster::munge
