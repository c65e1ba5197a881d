import type {
  DescriptorProto,
  EnumDescriptorProto,
  FileDescriptorProto,
  FileDescriptorSet,
} from "@bufbuild/protobuf/wkt";

/** Returns the comment of a proto element by full name, such as `pilothouse.v1.Session.status`, or "". */
export type Comments = (fullName: string) => string;

/**
 * Reads the comments from the descriptor image that `npm run generate` writes, because the generated code contains
 * none.
 */
export function readComments(image: FileDescriptorSet): Comments {
  const comments = new Map<string, string>();
  for (const file of image.file) {
    const byPath = new Map(
      file.sourceCodeInfo?.location.map(({ path, leadingComments }) => [path.join("."), tidy(leadingComments)]),
    );
    for (const [fullName, path] of elementsOf(file)) {
      comments.set(fullName, byPath.get(path) ?? "");
    }
  }
  return (fullName) => comments.get(fullName) ?? "";
}

/** Joins the lines of each paragraph, since line breaks depend only on the width of the proto file. */
function tidy(comment: string): string {
  return comment
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replaceAll(/\s*\n\s*/g, " "))
    .filter((paragraph) => paragraph !== "")
    .join("\n\n");
}

/**
 * Yields every message, field, oneof, enum, enum value, service and method, with its path of field numbers and indexes
 * (SourceCodeInfo.Location in descriptor.proto).
 */
function* elementsOf(file: FileDescriptorProto): Generator<[fullName: string, path: string]> {
  for (const [i, message] of file.messageType.entries()) {
    yield* elementsOfMessage(message, file.package, `4.${i}`);
  }
  for (const [i, desc] of file.enumType.entries()) {
    yield* elementsOfEnum(desc, file.package, `5.${i}`);
  }
  for (const [i, service] of file.service.entries()) {
    const name = `${file.package}.${service.name}`;
    yield [name, `6.${i}`];
    for (const [j, method] of service.method.entries()) {
      yield [`${name}.${method.name}`, `6.${i}.2.${j}`];
    }
  }
}

function* elementsOfMessage(message: DescriptorProto, parent: string, path: string): Generator<[string, string]> {
  const name = `${parent}.${message.name}`;
  yield [name, path];
  for (const [i, field] of message.field.entries()) {
    yield [`${name}.${field.name}`, `${path}.2.${i}`];
  }
  for (const [i, nested] of message.nestedType.entries()) {
    yield* elementsOfMessage(nested, name, `${path}.3.${i}`);
  }
  for (const [i, desc] of message.enumType.entries()) {
    yield* elementsOfEnum(desc, name, `${path}.4.${i}`);
  }
  for (const [i, oneof] of message.oneofDecl.entries()) {
    yield [`${name}.${oneof.name}`, `${path}.8.${i}`];
  }
}

function* elementsOfEnum(desc: EnumDescriptorProto, parent: string, path: string): Generator<[string, string]> {
  const name = `${parent}.${desc.name}`;
  yield [name, path];
  for (const [i, value] of desc.value.entries()) {
    yield [`${name}.${value.name}`, `${path}.2.${i}`];
  }
}
