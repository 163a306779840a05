#include "core/node/template_codec.hpp"

#include "base/bytes.hpp"

#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::core::node {
namespace {

// What a reader found besides fields.
struct Found {
  std::string damage;            // it stops there; empty: none so far
  std::optional<int> must_know;  // an unknown field that must be known
};

template <class T>
struct Field {
  uint16_t tag = 0;
  bool (*same)(const T&, const T&) = nullptr;
  void (*write)(Writer&, const T&) = nullptr;
  void (*read)(Reader&, T&, Found&) = nullptr;
};

template <class T>
struct Fields;  // T's table; specialized below

template <class T>
concept Tabled = requires {
  Fields<T>::kAll;
};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class K, class V>
struct IsMap<std::map<K, V>> : std::true_type {};

void put(Writer& out, const InputTablePtr& table) {
  out.text(table ? table->bytes() : std::string());
}
void get(Reader& in, InputTablePtr& table, Found& found) {
  auto read = InputTable::of(std::string(in.text()));
  if (!read) found.damage = read.error().message;
  if (read) table = std::make_shared<const InputTable>(std::move(*read));
}

template <class T>
void put(Writer& out, const T& value);
template <class T>
void get(Reader& in, T& value, Found& found);

template <Tabled T>
void put_fields(Writer& out, const T& value) {
  static const T kDefault{};
  for (const Field<T>& field : Fields<T>::kAll) {
    if (field.same(value, kDefault)) continue;
    std::string bytes;
    Writer inner(bytes);
    field.write(inner, value);
    out.num(field.tag).text(bytes);
  }
}

template <Tabled T>
std::string bytes_of(const T& value) {
  std::string bytes;
  Writer out(bytes);
  put_fields(out, value);
  return bytes;
}

template <Tabled T>
void get_fields(std::string_view bytes, T& value, Found& found) {
  Reader in(bytes);
  while (in.ok() && !in.rest().empty() && found.damage.empty()) {
    const auto tag = in.num<uint16_t>();
    Reader inner(in.text());
    const Field<T>* known = nullptr;
    for (const Field<T>& field : Fields<T>::kAll)
      if (field.tag == tag) known = &field;
    if (known) {
      known->read(inner, value, found);
      if (!inner.ok() || !inner.rest().empty()) found.damage = "a field is damaged";
    } else if (tag & kMustKnow) {
      found.must_know = tag & ~kMustKnow;
    }
  }
  if (!in.ok()) found.damage = "it is cut short";
}

template <class T>
void put(Writer& out, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    out.num(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::same_as<T, bool>) {
    out.num(uint8_t{value});
  } else if constexpr (std::integral<T>) {
    out.num(value);
  } else if constexpr (std::same_as<T, std::string>) {
    out.text(value);
  } else if constexpr (IsOptional<T>::value) {
    put(out, value.value_or(typename T::value_type{}));  // absent: the field is not written
  } else if constexpr (std::same_as<T, ConfigDataPtr>) {
    put(out, *value);
  } else if constexpr (IsVector<T>::value) {
    out.num(static_cast<uint32_t>(value.size()));
    for (const auto& one : value) put(out, one);
  } else if constexpr (IsMap<T>::value) {
    out.num(static_cast<uint32_t>(value.size()));
    for (const auto& [key, one] : value) {
      out.text(key);
      put(out, one);
    }
  } else {
    out.text(bytes_of(value));
  }
}

template <class T>
void get(Reader& in, T& value, Found& found) {
  if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(in.num<std::underlying_type_t<T>>());
  } else if constexpr (std::same_as<T, bool>) {
    value = in.num<uint8_t>() != 0;
  } else if constexpr (std::integral<T>) {
    value = in.num<T>();
  } else if constexpr (std::same_as<T, std::string>) {
    value = in.text();
  } else if constexpr (IsOptional<T>::value) {
    get(in, value.emplace(), found);
  } else if constexpr (std::same_as<T, ConfigDataPtr>) {
    ConfigData data;
    get(in, data, found);
    value = std::make_shared<const ConfigData>(std::move(data));
  } else if constexpr (IsVector<T>::value) {
    for (auto left = in.num<uint32_t>(); left > 0 && in.ok() && found.damage.empty(); --left)
      get(in, value.emplace_back(), found);
  } else if constexpr (IsMap<T>::value) {
    for (auto left = in.num<uint32_t>(); left > 0 && in.ok() && found.damage.empty(); --left) {
      std::string key(in.text());
      get(in, value[std::move(key)], found);
    }
  } else {
    get_fields(in.text(), value, found);
  }
}

template <auto kMember, class T, class M>
constexpr Field<T> row_of(uint16_t tag, M T::*) {
  return {tag, [](const T& a, const T& b) { return a.*kMember == b.*kMember; },
          [](Writer& out, const T& value) { put(out, value.*kMember); },
          [](Reader& in, T& value, Found& found) { get(in, value.*kMember, found); }};
}

template <auto kMember>
constexpr auto row(uint16_t tag) {
  return row_of<kMember>(tag, kMember);
}

template <>
struct Fields<SecretRef> {
  static constexpr std::array kAll{row<&SecretRef::name>(1), row<&SecretRef::key>(2),
                                   row<&SecretRef::optional>(3)};
};
template <>
struct Fields<ConfigKeyRef> {
  static constexpr std::array kAll{row<&ConfigKeyRef::name>(1), row<&ConfigKeyRef::key>(2),
                                   row<&ConfigKeyRef::optional>(3)};
};
template <>
struct Fields<EnvVar> {
  static constexpr std::array kAll{row<&EnvVar::name>(1), row<&EnvVar::value>(2),
                                   row<&EnvVar::field_path>(3), row<&EnvVar::secret>(4),
                                   row<&EnvVar::config>(5)};
};
template <>
struct Fields<EnvSource> {
  static constexpr std::array kAll{row<&EnvSource::prefix>(1), row<&EnvSource::config_map>(2),
                                   row<&EnvSource::optional>(3)};
};
template <>
struct Fields<VolumeMount> {
  static constexpr std::array kAll{row<&VolumeMount::name>(1), row<&VolumeMount::mount_path>(2),
                                   row<&VolumeMount::sub_path>(3), row<&VolumeMount::read_only>(4)};
};
template <>
struct Fields<VolumeItem> {
  static constexpr std::array kAll{row<&VolumeItem::key>(1), row<&VolumeItem::path>(2),
                                   row<&VolumeItem::mode>(3)};
};
template <>
struct Fields<Volume> {
  static constexpr std::array kAll{
      row<&Volume::name>(1),   row<&Volume::kind>(2),          row<&Volume::kinds>(3),
      row<&Volume::medium>(4), row<&Volume::size_limit>(5),    row<&Volume::path>(6),
      row<&Volume::type>(7),   row<&Volume::secret>(8),        row<&Volume::config_map>(9),
      row<&Volume::items>(10), row<&Volume::default_mode>(11), row<&Volume::optional>(12)};
};
template <>
struct Fields<ConfigData> {
  static constexpr std::array kAll{row<&ConfigData::text>(1), row<&ConfigData::binary>(2)};
};
template <>
struct Fields<Confinement> {
  static constexpr std::array kAll{
      row<&Confinement::uid>(1), row<&Confinement::gid>(2), row<&Confinement::non_root>(3),
      row<&Confinement::no_new_privileges>(4), row<&Confinement::dropped>(5)};
};
template <>
struct Fields<Container> {
  static constexpr std::array kAll{row<&Container::name>(1),    row<&Container::command>(2),
                                   row<&Container::args>(3),    row<&Container::working_dir>(4),
                                   row<&Container::env>(5),     row<&Container::volume_mounts>(6),
                                   row<&Container::env_from>(7)};
};
template <>
struct Fields<TemplateContainer> {
  static constexpr std::array kAll{row<&TemplateContainer::what>(1),
                                   row<&TemplateContainer::memory_limit_bytes>(2),
                                   row<&TemplateContainer::cpu_limit_millis>(3),
                                   row<&TemplateContainer::devices>(4),
                                   row<&TemplateContainer::confinement>(5),
                                   row<&TemplateContainer::cpus>(6)};
};
template <>
struct Fields<ProcessSettings> {
  static constexpr std::array kAll{
      row<&ProcessSettings::nice>(1), row<&ProcessSettings::umask>(2),
      row<&ProcessSettings::soft_limits>(3), row<&ProcessSettings::out>(4 | kMustKnow),
      row<&ProcessSettings::err>(5 | kMustKnow), row<&ProcessSettings::append>(6 | kMustKnow),
      // Without it, both streams have logs of their own.
      row<&ProcessSettings::joined>(7)};
};
template <>
struct Fields<LimitSignal> {
  static constexpr std::array kAll{row<&LimitSignal::number>(1), row<&LimitSignal::before_ms>(2),
                                   row<&LimitSignal::first_only>(3)};
};
template <>
struct Fields<PodTemplate> {
  static constexpr std::array kAll{row<&PodTemplate::job>(1),
                                   row<&PodTemplate::generation>(2),
                                   row<&PodTemplate::job_name>(3),
                                   row<&PodTemplate::job_uid>(4),
                                   row<&PodTemplate::ns>(5),
                                   row<&PodTemplate::owner_uid>(6),
                                   row<&PodTemplate::indexed>(7),
                                   row<&PodTemplate::completions>(8),
                                   row<&PodTemplate::parallelism>(9),
                                   row<&PodTemplate::grace_ms>(10),
                                   row<&PodTemplate::restarts>(11),
                                   row<&PodTemplate::restart_delay_ms>(12),
                                   row<&PodTemplate::active_deadline_ms>(13),
                                   row<&PodTemplate::fence_after_ms>(14),
                                   row<&PodTemplate::init_containers>(15),
                                   row<&PodTemplate::containers>(16),
                                   row<&PodTemplate::labels>(17),
                                   row<&PodTemplate::annotations>(18),
                                   row<&PodTemplate::mpi>(19),
                                   row<&PodTemplate::inputs>(20),
                                   row<&PodTemplate::inputs_file>(21),
                                   row<&PodTemplate::volumes>(22),
                                   row<&PodTemplate::private_tmp>(23),
                                   row<&PodTemplate::configs>(24),
                                   row<&PodTemplate::process>(25),
                                   row<&PodTemplate::signal>(26 | kMustKnow),
                                   row<&PodTemplate::sidecars>(27 | kMustKnow)};
};

}  // namespace

std::string template_bytes(const PodTemplate& job) {
  return bytes_of(job);
}

Result<PodTemplate> read_template(std::string_view bytes) {
  PodTemplate job;
  Found found;
  get_fields(bytes, job, found);
  if (!found.damage.empty())
    return Error{Errc::invalid, "the pod's template cannot be read: " + found.damage, {}};
  if (found.must_know)
    job.refusal = "the job asks for something that only newer versions of muster know (field " +
                  std::to_string(*found.must_know) + " of its template); upgrade this node";
  for (const auto& container : job.containers) add_needs(container.what, job.config_needs);
  for (const Volume& volume : job.volumes) add_needs(volume, job.config_needs);
  return job;
}

std::string settings_bytes(const ProcessSettings& settings) {
  return bytes_of(settings);
}

ProcessSettings read_settings(std::string_view bytes) {
  ProcessSettings settings;
  Found found;
  get_fields(bytes, settings, found);
  return settings;
}

}  // namespace muster::core::node
