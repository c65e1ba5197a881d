import type { MethodDefinition, Server, UntypedHandleCall } from "@grpc/grpc-js";

/** A service definition with its handlers. */
export type AddedService = Parameters<Server["addService"]>;

/** Path of a method, and which of its sides are streams. */
type MethodShape = Pick<MethodDefinition<unknown, unknown>, "path" | "requestStream" | "responseStream">;

interface LoadedMethod {
  readonly definition: MethodDefinition<unknown, unknown>;
  readonly handler: UntypedHandleCall;
}

/**
 * Adds methods whose packages are slow to load. The first call of one of the methods loads the services of all of them.
 */
export function addLazily(server: Server, methods: readonly MethodShape[], load: () => readonly AddedService[]): void {
  let loaded: ReadonlyMap<string, LoadedMethod> | undefined;

  function loadedMethod(path: string): LoadedMethod {
    loaded ??= new Map(load().flatMap(methodsOf));
    const method = loaded.get(path);
    if (!method) throw new Error(`expected a loaded service with the method ${path}`);
    return method;
  }

  for (const shape of methods) {
    const { path } = shape;
    const serve = (...parameters: Parameters<UntypedHandleCall>) =>
      Reflect.apply(loadedMethod(path).handler, undefined, parameters);
    const definition: MethodDefinition<unknown, unknown> = {
      ...shape,
      requestSerialize: (request) => loadedMethod(path).definition.requestSerialize(request),
      requestDeserialize: (bytes) => loadedMethod(path).definition.requestDeserialize(bytes),
      responseSerialize: (response) => loadedMethod(path).definition.responseSerialize(response),
      responseDeserialize: (bytes) => loadedMethod(path).definition.responseDeserialize(bytes),
    };
    server.addService({ serve: definition }, { serve });
  }
}

/** Returns the services that a package adds to a server. */
export function servicesOf(library: { addToServer(server: Pick<Server, "addService">): void }): AddedService[] {
  const added: AddedService[] = [];
  library.addToServer({ addService: (...service) => void added.push(service) });
  return added;
}

function methodsOf([definitions, handlers]: AddedService): [string, LoadedMethod][] {
  return Object.entries(definitions).flatMap(([name, definition]) => {
    const handler = handlers[name] ?? handlers[definition.originalName ?? ""];
    return handler ? [[definition.path, { definition, handler }]] : [];
  });
}
