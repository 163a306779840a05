#include "trust/permit/permit.hpp"

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/hex.hpp"
#include "core/node/space.hpp"
#include "core/node/template_codec.hpp"
#include "core/spec/values/inputs.hpp"

#include <algorithm>
#include <openssl/evp.h>
#include <optional>
#include <utility>

namespace muster {
namespace {

// The second form adds secrets, the third MPI jobs and sessions, the fourth sessions that read
// input, the fifth inputs of indexes, the sixth volumes, the seventh config maps. The eighth adds
// no field: its containers share an in-memory volume, of which older keepers would give each its
// own. Of these, a form is used only when its addition is needed, so older keepers accept all other
// permits. The ninth has no template, only the size of its bytes, which follow what is signed.
enum class Form {
  first = 1,
  secrets,
  sessions,
  session_input,
  index_inputs,
  volumes,
  config_maps,
  shared_memory,
  beside_template
};
constexpr std::string_view kForm = "muster permit ";  // then its number
constexpr size_t kKeyBytes = 32, kSignatureBytes = 64;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeDigest {
  void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Digest = std::unique_ptr<EVP_MD_CTX, FreeDigest>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::optional<std::string> from_hex(std::string_view hex) {
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (hex.size() != 2 * kKeyBytes) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

Key private_key(const std::string& seed) {
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed), seed.size()));
}

void write_map(Writer& out, const core::StringMap& map) {
  out.num(static_cast<uint32_t>(map.size()));
  for (const auto& [key, value] : map) out.text(key).text(value);
}

core::StringMap read_map(Reader& in) {
  core::StringMap map;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    std::string key(in.text());
    map[std::move(key)] = in.text();
  }
  return map;
}

void write_list(Writer& out, const std::vector<std::string>& list) {
  out.num(static_cast<uint32_t>(list.size()));
  for (const std::string& text : list) out.text(text);
}

std::vector<std::string> read_list(Reader& in) {
  std::vector<std::string> list;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) list.emplace_back(in.text());
  return list;
}

bool has_secrets(const core::node::PodTemplate& job) {
  return std::any_of(job.containers.begin(), job.containers.end(), [](const auto& container) {
    const auto& env = container.what.env;
    return std::any_of(env.begin(), env.end(), [](const auto& one) { return one.secret; });
  });
}

void write_secret(Writer& out, const std::optional<core::SecretRef>& secret) {
  out.num(uint8_t{secret.has_value()});
  if (secret) out.text(secret->name).text(secret->key).num(uint8_t{secret->optional});
}

std::optional<core::SecretRef> read_secret(Reader& in) {
  if (in.num<uint8_t>() == 0) return std::nullopt;
  core::SecretRef secret;
  secret.name = in.text();
  secret.key = in.text();
  secret.optional = in.num<uint8_t>() != 0;
  return secret;
}

void write_config(Writer& out, const std::optional<core::ConfigKeyRef>& config) {
  out.num(uint8_t{config.has_value()});
  if (config) out.text(config->name).text(config->key).num(uint8_t{config->optional});
}

std::optional<core::ConfigKeyRef> read_config(Reader& in) {
  if (in.num<uint8_t>() == 0) return std::nullopt;
  core::ConfigKeyRef config;
  config.name = in.text();
  config.key = in.text();
  config.optional = in.num<uint8_t>() != 0;
  return config;
}

void write_configs(Writer& out, const core::ConfigMaps& maps) {
  out.num(static_cast<uint32_t>(maps.size()));
  for (const auto& [name, data] : maps) {
    out.text(name);
    write_map(out, data->text);
    write_map(out, data->binary);
  }
}

core::ConfigMaps read_configs(Reader& in) {
  core::ConfigMaps maps;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    std::string name(in.text());
    core::StringMap text = read_map(in), binary = read_map(in);
    maps[std::move(name)] = std::make_shared<const core::ConfigData>(
        core::ConfigData{std::move(text), std::move(binary)});
  }
  return maps;
}

void write_container(Writer& out, const core::node::TemplateContainer& container, Form form) {
  const bool secrets = form >= Form::secrets, configs = form >= Form::config_maps;
  const core::Container& what = container.what;
  out.text(what.name).text(what.working_dir);
  write_list(out, what.command);
  write_list(out, what.args);
  out.num(static_cast<uint32_t>(what.env.size()));
  for (const core::EnvVar& one : what.env) {
    out.text(one.name).text(one.value).text(one.field_path);
    if (secrets) write_secret(out, one.secret);
    if (configs) write_config(out, one.config);
  }
  if (configs) {
    out.num(static_cast<uint32_t>(what.env_from.size()));
    for (const core::EnvSource& source : what.env_from)
      out.text(source.prefix).text(source.config_map).num(uint8_t{source.optional});
  }
  out.num(static_cast<uint32_t>(container.devices.size()));
  for (const auto& [name, count] : container.devices) out.text(name).num(count);
}

core::node::TemplateContainer read_container(Reader& in, Form form) {
  const bool secrets = form >= Form::secrets, configs = form >= Form::config_maps;
  core::node::TemplateContainer container;
  core::Container& what = container.what;
  what.name = in.text();
  what.working_dir = in.text();
  what.command = read_list(in);
  what.args = read_list(in);
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    core::EnvVar& one = what.env.emplace_back();
    one.name = in.text();
    one.value = in.text();
    one.field_path = in.text();
    if (secrets) one.secret = read_secret(in);
    if (configs) one.config = read_config(in);
  }
  for (auto count = configs ? in.num<uint32_t>() : 0; count > 0 && in.ok(); --count) {
    core::EnvSource& source = what.env_from.emplace_back();
    source.prefix = in.text();
    source.config_map = in.text();
    source.optional = in.num<uint8_t>() != 0;
  }
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    std::string name(in.text());
    container.devices[std::move(name)] = in.num<uint32_t>();
  }
  return container;
}

Form form_of(const Permit& permit) {
  const core::node::PodTemplate& job = permit.job;
  const auto& session = permit.session;
  if (core::node::shares_memory(job)) return Form::shared_memory;
  if (!job.config_needs.empty()) return Form::config_maps;
  if (!job.volumes.empty() || job.private_tmp) return Form::volumes;
  if (job.inputs || !job.inputs_file.empty()) return Form::index_inputs;
  if (session && (session->input || session->terminal)) return Form::session_input;
  if (session || !job.mpi.empty()) return Form::sessions;
  return has_secrets(job) ? Form::secrets : Form::first;
}

std::optional<Form> read_form(std::string_view text) {
  if (!text.starts_with(kForm) || text.size() != kForm.size() + 1) return std::nullopt;
  const int number = text.back() - '0';
  if (number < static_cast<int>(Form::first) || number > static_cast<int>(Form::beside_template))
    return std::nullopt;
  return static_cast<Form>(number);
}

void write_session(Writer& out, const std::optional<PermitSession>& session, bool with_input) {
  out.num(uint8_t{session.has_value()});
  if (!session) return;
  out.num(session->index).num(session->attempt).num(session->container).text(session->id);
  write_list(out, session->command);
  if (with_input) out.num(uint8_t{session->input}).num(uint8_t{session->terminal});
}

std::optional<PermitSession> read_session(Reader& in, bool with_input) {
  if (in.num<uint8_t>() == 0) return std::nullopt;
  PermitSession session;
  session.index = in.num<uint32_t>();
  session.attempt = in.num<uint32_t>();
  session.container = in.num<uint16_t>();
  session.id = in.text();
  session.command = read_list(in);
  if (with_input) {
    session.input = in.num<uint8_t>() != 0;
    session.terminal = in.num<uint8_t>() != 0;
  }
  return session;
}

}  // namespace

std::string permit_bytes(const Permit& permit, std::string_view beside) {
  std::string bytes;
  Writer out(bytes);
  const Form form = beside.empty() ? form_of(permit) : Form::beside_template;
  out.text(std::string(kForm) + std::to_string(static_cast<int>(form)))
      .text(permit.cluster)
      .text(permit.node)
      .num(int64_t{permit.until_ms});
  const core::Owner& owner = permit.owner;
  out.num(owner.uid).num(owner.gid).text(owner.name).text(owner.home);
  out.num(static_cast<uint32_t>(owner.groups.size()));
  for (const uint32_t gid : owner.groups) out.num(gid);
  if (form == Form::beside_template) {
    write_session(out, permit.session, true);
    out.num(static_cast<uint32_t>(beside.size()));
    return bytes;
  }
  const core::node::PodTemplate& job = permit.job;
  out.num(uint64_t{job.job}).num(int64_t{job.generation}).text(job.job_name).text(job.job_uid);
  out.text(job.ns).num(uint8_t{job.indexed}).num(int32_t{job.completions.value_or(-1)});
  out.num(int32_t{job.parallelism});
  write_map(out, job.labels);
  write_map(out, job.annotations);
  out.num(static_cast<uint32_t>(job.init_containers));
  out.num(static_cast<uint32_t>(job.containers.size()));
  for (const auto& container : job.containers) write_container(out, container, form);
  if (form >= Form::sessions) {
    out.text(job.mpi);
    write_session(out, permit.session, form >= Form::session_input);
  }
  if (form >= Form::index_inputs) {
    out.num(uint8_t{job.inputs != nullptr});
    if (job.inputs) out.text(job.inputs->bytes());
    out.text(job.inputs_file);
  }
  if (form >= Form::volumes) {
    out.num(uint8_t{job.private_tmp});
    core::write_volumes(out, job.volumes);
    for (const auto& container : job.containers)
      core::write_mounts(out, container.what.volume_mounts);
  }
  if (form >= Form::config_maps) write_configs(out, job.configs);
  return bytes;
}

Result<Permit> read_permit(std::string_view bytes, std::string_view beside) {
  Reader in(bytes);
  const auto form = read_form(in.text());
  if (!form) return Error{Errc::invalid, "it is not a permit of this version", {}};
  Permit permit;
  permit.cluster = in.text();
  permit.node = in.text();
  permit.until_ms = in.num<int64_t>();
  permit.owner.uid = in.num<uint32_t>();
  permit.owner.gid = in.num<uint32_t>();
  permit.owner.name = in.text();
  permit.owner.home = in.text();
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count)
    permit.owner.groups.push_back(in.num<uint32_t>());
  core::node::PodTemplate& job = permit.job;
  if (*form == Form::beside_template) {
    permit.session = read_session(in, true);
    if (in.num<uint32_t>() != beside.size() || !in.ok() || !in.rest().empty())
      return Error{Errc::invalid, "the permit is cut short", {}};
    auto read = core::node::read_template(beside);
    if (!read) return read.error();
    job = std::move(*read);
    return permit;
  }
  if (!beside.empty()) return Error{Errc::invalid, "this permit has a template of its own", {}};
  job.job = in.num<uint64_t>();
  job.generation = in.num<int64_t>();
  job.job_name = in.text();
  job.job_uid = in.text();
  job.ns = in.text();
  job.indexed = in.num<uint8_t>() != 0;
  if (const auto completions = in.num<int32_t>(); completions >= 0) job.completions = completions;
  job.parallelism = in.num<int32_t>();
  job.labels = read_map(in);
  job.annotations = read_map(in);
  job.init_containers = in.num<uint32_t>();
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count)
    job.containers.push_back(read_container(in, *form));
  if (*form >= Form::sessions) {
    job.mpi = in.text();
    permit.session = read_session(in, *form >= Form::session_input);
  }
  if (*form >= Form::index_inputs) {
    if (in.num<uint8_t>() != 0) {
      auto table = core::InputTable::of(std::string(in.text()));
      if (!table) return table.error();
      job.inputs = std::make_shared<const core::InputTable>(std::move(*table));
    }
    job.inputs_file = in.text();
  }
  if (*form >= Form::volumes) {
    job.private_tmp = in.num<uint8_t>() != 0;
    job.volumes = core::read_volumes(in);
    for (const core::Volume& volume : job.volumes) core::add_needs(volume, job.config_needs);
    for (auto& container : job.containers) container.what.volume_mounts = core::read_mounts(in);
  }
  if (*form >= Form::config_maps) job.configs = read_configs(in);
  for (const auto& container : job.containers) core::add_needs(container.what, job.config_needs);
  if (!in.ok() || !in.rest().empty()) return Error{Errc::invalid, "the permit is cut short", {}};
  return permit;
}

Result<PermitKey> PermitKey::of_private(const std::string& hex) {
  auto seed = from_hex(hex);
  if (!seed || !private_key(*seed))
    return Error{Errc::invalid, "not a private key of 64 hexadecimal digits", {}};
  return PermitKey(std::move(*seed));
}

std::string PermitKey::public_hex() const {
  const Key key = private_key(seed_);
  std::string bytes(kKeyBytes, '\0');
  size_t size = bytes.size();
  MUSTER_CHECK(EVP_PKEY_get_raw_public_key(
                   key.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size) == 1);
  return to_hex(bytes);
}

std::string PermitKey::sign(std::string_view bytes) const {
  const Key key = private_key(seed_);
  const Digest digest(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  MUSTER_CHECK(EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
               EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()),
                              &size, bytes_of(bytes), bytes.size()) == 1);
  return signature;
}

bool verify_permit(const std::string& public_hex, std::string_view bytes,
                   std::string_view signature) {
  const auto raw = from_hex(public_hex);
  if (!raw || signature.size() != kSignatureBytes) return false;
  const Key key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(*raw), raw->size()));
  const Digest digest(EVP_MD_CTX_new());
  return key && digest &&
         EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(digest.get(), bytes_of(signature), signature.size(), bytes_of(bytes),
                          bytes.size()) == 1;
}

}  // namespace muster
