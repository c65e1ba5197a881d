import { type AnyDesc, type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";
import { http } from "../../src/gen/google/api/annotations_pb.ts";
import { event_type, nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { Contract } from "./contract-image.ts";

/** Event types of the interface. */
const eventTypes = [
  "session.completed",
  "session.failed",
  "quota.warning_80pct",
  "quota.exceeded",
  "api_key.revoked",
  "session.egress_capability_changed",
  "crypto.order.paid",
  "crypto.order.failed",
  "session.challenge_detected",
  "session.profile_save_failed",
  "test.ping",
];

const secretName = /(^|_)(secret|password|token|recovery_codes)$/;

function fieldsOf(contract: Contract): DescField[] {
  return contract.messages.flatMap((message) => message.fields);
}

/** A oneof becomes `{"kind": ..., members}` in JSON, so its members must be messages without a field `kind`. */
function kindIsFree(contract: Contract): string[] {
  return fieldsOf(contract)
    .filter((field) => field.oneof && !field.message?.fields.every((inner) => inner.name !== "kind"))
    .map((field) => `${field}: is no message, or has a field named kind`);
}

/** The zero value of every enum must be unspecified. */
function enumZeros(contract: Contract): string[] {
  return contract.enums
    .filter((desc) => !desc.values.some(({ number, name }) => number === 0 && name.endsWith("_UNSPECIFIED")))
    .map((desc) => `${desc}: its zero does not end in _UNSPECIFIED`);
}

/** Names decided before this rule. */
const decidedNames: readonly string[] = ["pilothouse.v1.ReplayFailedDeliveriesRequest.since"];

/** Exactly the timestamps must be named `*_at`, or `at` if the message is one moment. */
function timestampNames(contract: Contract): string[] {
  return fieldsOf(contract)
    .filter((field) => !decidedNames.includes(`${field.parent.typeName}.${field.name}`))
    .filter((field) => (field.message?.typeName === "google.protobuf.Timestamp") !== /(^|_)at$/.test(field.name))
    .map((field) => `${field}: a timestamp, or only named like one`);
}

/** All descriptors except zero enum values must have a comment of full sentences. */
function comments(contract: Contract): string[] {
  const described: Exclude<AnyDesc, { kind: "file" }>[] = [
    ...contract.services,
    ...contract.methods,
    ...contract.messages,
    ...contract.messages.flatMap((message) => [...message.oneofs, ...message.fields]),
    ...contract.enums,
    ...contract.enums.flatMap((desc) => desc.values.filter((value) => value.number !== 0)),
  ];
  return described
    .filter((desc) => !/\S.*[.:]\s*$/s.test(getComments(desc).leading ?? ""))
    .map((desc) => `${desc}: has no comment of full sentences`);
}

/** Lists must take `limit` and `cursor`, and return `data`, `has_more` and a nullable `next_cursor`. */
function lists(contract: Contract): string[] {
  const has = (message: DescMessage, ...names: string[]) =>
    names.every((name) => message.fields.some((field) => field.name === name));
  return contract.methods
    .filter(({ input, output }) => {
      const next = output.fields.find((field) => field.name === "next_cursor");
      const isList = next !== undefined || has(input, "cursor") || output.name.startsWith("List");
      const isNullable = next !== undefined && getOption(next, nullable);
      return isList && !(isNullable && has(input, "limit", "cursor") && has(output, "data", "has_more"));
    })
    .map((method) => `${method}: is not paged as lists are`);
}

/** Exactly the PATCH requests must end with an update mask. */
function updateMasks(contract: Contract): string[] {
  return contract.methods
    .filter((method) => {
      const last = method.input.fields.at(-1);
      const hasMask = last?.message?.typeName === "google.protobuf.FieldMask" && last.name === "update_mask";
      return hasMask !== (getOption(method, http).pattern.case === "patch");
    })
    .map((method) => `${method}: PATCH and update_mask do not go together`);
}

/** Fields with secret names must be redacted in logs. */
function secrets(contract: Contract): string[] {
  return fieldsOf(contract)
    .filter((field) => secretName.test(field.name) && field.proto.options?.debugRedact !== true)
    .map((field) => `${field}: is secret and not debug_redact`);
}

/** Every event type of the interface must have exactly one payload message. */
function eventPayloads(contract: Contract): string[] {
  const found = contract.messages.map((message) => getOption(message, event_type)).filter((type) => type !== "");
  return [
    ...eventTypes.filter((type) => !found.includes(type)).map((type) => `${type} has no payload message`),
    ...found.filter((type, index) => found.indexOf(type) !== index).map((type) => `${type} has two payload messages`),
  ];
}

/** The OpenAPI document and the SDKs require response fields that are neither `optional` nor nullable. */
function absences(contract: Contract): string[] {
  return fieldsOf(contract)
    .filter((field) => /(^|[.:]\s+)Absent\b/.test(getComments(field).leading ?? ""))
    .filter((field) => !field.proto.proto3Optional && !getOption(field, nullable))
    .map((field) => `${field}: can be absent, and is neither optional nor nullable`);
}

/** Every file names the packages of its generated code. Outer classes must not have names of messages. */
function filePackages(contract: Contract): string[] {
  return contract.files
    .filter(({ proto: { options } }) => {
      const { goPackage, javaPackage, javaMultipleFiles, javaOuterClassname, csharpNamespace } = options ?? {};
      const named = goPackage && javaPackage && csharpNamespace;
      return !(named && javaMultipleFiles && javaOuterClassname?.endsWith("Proto"));
    })
    .map(({ name }) => `${name}: lacks a package option for Go, Java or C#`);
}

export const shapeRules = {
  kindIsFree,
  enumZeros,
  timestampNames,
  comments,
  lists,
  updateMasks,
  secrets,
  eventPayloads,
  filePackages,
  absences,
};
