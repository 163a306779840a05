#include "storage/rows/summary_row.hpp"

#include "core/spec/fields/annotations.hpp"
#include "schema/journal.capnp.h"
#include "storage/codec/codec.hpp"
#include "storage/codec/codec_util.hpp"
#include "storage/journal/keys.hpp"

namespace muster::storage {
namespace {

using codec::text;
using codec::text_back;

constexpr size_t kStateMax = 4096;  // bytes; a start reads every summary row
constexpr const char* kWhat = "a summary row";

void write_map(const core::StringMap& from, capnp::List<wire::Label>::Builder to) {
  uint32_t i = 0;
  for (const auto& [key, value] : from) {
    to[i].setKey(text(key));
    to[i++].setValue(text(value));
  }
}

core::StringMap map_back(capnp::List<wire::Label>::Reader from) {
  core::StringMap map;
  for (auto label : from)
    map.emplace_hint(map.end(), text_back(label.getKey()), text_back(label.getValue()));
  return map;
}

std::vector<core::OwnerRef> owners_back(capnp::List<wire::OwnerReference>::Reader from) {
  std::vector<core::OwnerRef> owners;
  for (auto one : from)
    owners.push_back({text_back(one.getApiVersion()), text_back(one.getKind()),
                      text_back(one.getName()), text_back(one.getUid()), one.getBlocks(),
                      one.getController()});
  return owners;
}

struct Brief {
  core::JobObject object;
  std::string state;  // an encoded snapshot
};

}  // namespace

Row summary_row(const core::Job& job) {
  const core::JobSummary summary = core::summary_of(job);
  const core::JobObject object = core::brief(job.object());
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::SummaryRow>();
  out.setVersion(wire::SUMMARY_VERSION);
  out.setNamespace(text(summary.ns));
  out.setName(text(summary.name));
  out.setUid(text(summary.uid));
  out.setFinishedMs(summary.finished_ms);
  out.setWakeMs(summary.wake_ms.value_or(0));
  out.setComplete(summary.complete);
  out.setNamedPods(summary.named_pods);
  out.setNoticeDue(summary.notice_due);
  out.setGeneration(object.meta.generation);
  out.setCreatedMs(object.meta.created_ms);
  write_map(object.meta.labels, out.initLabels(static_cast<uint32_t>(object.meta.labels.size())));
  core::StringMap owner = object.meta.annotations;
  if (const auto indexes = owner.extract(std::string(core::kIndexesKey))) {
    out.setSomeIndexes(true);
    out.setIndexes(text(indexes.mapped()));
  }
  out.setOwnerKnown(true);
  write_map(owner, out.initOwner(static_cast<uint32_t>(owner.size())));
  out.setCompletionMode(text(object.spec.completion_mode));
  out.setPerIndex(object.spec.backoff_limit_per_index.has_value());
  if (const auto& selector = object.spec.selector) {
    out.setHasSelector(true);
    write_map(selector->match_labels,
              out.initSelector(static_cast<uint32_t>(selector->match_labels.size())));
  }
  auto owners = out.initOwners(static_cast<uint32_t>(summary.owners.size()));
  for (uint32_t n = 0; n < owners.size(); ++n) {
    const core::OwnerRef& owner = summary.owners[n];
    owners[n].setApiVersion(text(owner.api_version));
    owners[n].setKind(text(owner.kind));
    owners[n].setName(text(owner.name));
    owners[n].setUid(text(owner.uid));
    owners[n].setBlocks(owner.blocks);
    owners[n].setController(owner.controller);
  }
  uint32_t i = 0;
  auto containers = out.initContainers(static_cast<uint32_t>(object.spec.pod.containers.size()));
  for (const core::Container& container : object.spec.pod.containers) {
    containers[i].setKey(text(container.name));
    containers[i++].setValue(text(container.image));
  }
  const std::string state = encode_state(core::brief(job.state()), 0);
  if (state.size() <= kStateMax)
    out.setState(kj::arrayPtr(reinterpret_cast<const kj::byte*>(state.data()), state.size()));
  return {keys::summary(job.id()), codec::packed(message)};
}

Row forget_summary_row(JobId job) {
  return {keys::summary(job), std::nullopt};
}

Result<core::JobSummary> decode_summary(JobId job, std::string_view bytes) {
  return codec::unpacked<wire::SummaryRow, core::JobSummary>(
      bytes, kWhat, wire::SUMMARY_VERSION, [job](auto row) -> core::JobSummary {
        return {job,
                text_back(row.getNamespace()),
                text_back(row.getName()),
                text_back(row.getUid()),
                row.getFinishedMs(),
                row.getWakeMs() == 0 ? std::nullopt : std::optional(row.getWakeMs()),
                row.getComplete(),
                row.getNamedPods(),
                owners_back(row.getOwners()),
                row.getNoticeDue(),
                row.getOwnerKnown()};
      });
}

Result<core::Job> brief_job(Rows& rows, JobId job) {
  auto row = rows.get(keys::summary(job));
  if (!row) return row.error();
  if (!*row) return Error{Errc::not_found, "journal: no summary row", {}};
  auto brief =
      codec::unpacked<wire::SummaryRow, Brief>(**row, kWhat, wire::SUMMARY_VERSION, [](auto from) {
        Brief to;
        core::JobMeta& meta = to.object.meta;
        meta.ns = text_back(from.getNamespace());
        meta.name = text_back(from.getName());
        meta.uid = text_back(from.getUid());
        meta.generation = from.getGeneration();
        meta.created_ms = from.getCreatedMs();
        meta.labels = map_back(from.getLabels());
        meta.annotations = map_back(from.getOwner());
        if (from.getSomeIndexes())
          meta.annotations.emplace(core::kIndexesKey, text_back(from.getIndexes()));
        core::JobSpec& spec = to.object.spec;
        spec.completion_mode = text_back(from.getCompletionMode());
        if (from.getPerIndex()) spec.backoff_limit_per_index = 0;
        if (from.getHasSelector())
          spec.selector.emplace().match_labels = map_back(from.getSelector());
        for (auto container : from.getContainers()) {
          core::Container& c = spec.pod.containers.emplace_back();
          c.name = text_back(container.getKey());
          c.image = text_back(container.getValue());
        }
        auto state = from.getState();
        to.state.assign(reinterpret_cast<const char*>(state.begin()), state.size());
        return to;
      });
  if (!brief) return brief.error();
  if (brief->state.empty()) return Error{Errc::not_found, "journal: a short summary row", {}};
  auto state = decode_state(brief->state);
  if (!state) return state.error();
  auto owner = rows.get(keys::owner(job));
  if (!owner) return owner.error();
  if (!*owner) return Error{Errc::not_found, "journal: there is no such job", {}};
  brief->object.json = std::move(**owner);
  return core::Job(job, std::make_shared<core::JobObject>(std::move(brief->object)),
                   std::move(state->state));
}

}  // namespace muster::storage
