import type { DescService } from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import { type ServedService, type ServiceImplementation, serve } from "../../src/kernel/registry.ts";

/** Creates a served service without implementations, for code that reads only the descriptors. */
export function unimplemented(service: DescService): ServedService {
  const methods = service.methods.map((method) => [method.localName, () => Promise.reject(new Error("not called"))]);
  // Casts because the descriptor is only known at run time.
  return serve(
    service as GenService<GenServiceMethods>,
    Object.fromEntries(methods) as unknown as ServiceImplementation<GenService<GenServiceMethods>>,
  );
}
