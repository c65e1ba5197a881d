import { globSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorkshop, type Workshop } from "./generated-client.ts";

const proto = join(import.meta.dirname, "../../proto");
const contract = globSync("pilothouse/v1/*.proto", { cwd: proto });
const vendored = globSync(["buf/**/*.proto", "google/**/*.proto"], { cwd: proto });

/** The protoc of these versions: of Python for Python and Go, of Maven for Java. */
const pythonTools = "grpcio-tools==1.76.0";
const javaVersion = "4.33.1";
const goPlugins = [
  "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11",
  "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.1",
];

/** Maven's name of the platform. */
const machine = `${process.platform === "darwin" ? "osx" : process.platform}-${process.arch === "arm64" ? "aarch_64" : "x86_64"}`;

const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>client</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>com.google.protobuf</groupId>
      <artifactId>protobuf-java</artifactId>
      <version>${javaVersion}</version>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <groupId>org.xolstice.maven.plugins</groupId>
        <artifactId>protobuf-maven-plugin</artifactId>
        <version>0.6.1</version>
        <executions><execution><goals><goal>compile</goal></goals></execution></executions>
        <configuration>
          <protocArtifact>com.google.protobuf:protoc:${javaVersion}:exe:${machine}</protocArtifact>
          <protoSourceRoot>proto</protoSourceRoot>
        </configuration>
      </plugin>
    </plugins>
  </build>
</project>
`;

const pythonProgram = `
import importlib
from pathlib import Path

for path in sorted(Path(".").glob("*/**/*_pb2*.py")):
    if "venv" not in path.parts:
        importlib.import_module(".".join(path.with_suffix("").parts))
from pilothouse.v1 import session_pb2
print(session_pb2.DESCRIPTOR.services_by_name["SessionService"].full_name)
`;

const goProgram = `package main

import (
	"fmt"

	pilothouse "example.com/journey/pilothouse/v1"
)

func main() {
	fmt.Println(pilothouse.SessionService_ServiceDesc.ServiceName)
}
`;

let workshop: Workshop;

// Modules of Go are writable so that the folder can be removed.
beforeAll(async () => {
  workshop = await openWorkshop("venv/bin", (directory) => ({
    GOPATH: join(directory, "go"),
    GOBIN: join(directory, "venv/bin"),
    GOFLAGS: "-modcacherw",
  }));
  await workshop.run("python3", "-m", "venv", "venv");
  await workshop.run("pip", "install", "--quiet", "--disable-pip-version-check", pythonTools);
}, 600_000);

afterAll(async () => {
  await workshop[Symbol.asyncDispose]();
});

describe("what protoc generates from the proto files", () => {
  const protoc = (...args: string[]) => workshop.run("python", "-m", "grpc_tools.protoc", "-I", proto, ...args);

  test("is imported by Python without a warning, vendored files included", async () => {
    const { stderr } = await protoc("--python_out=.", "--pyi_out=.", "--grpc_python_out=.", ...contract, ...vendored);
    expect(stderr).toBe("");
    await writeFile(join(workshop.directory, "journey.py"), pythonProgram);
    const { stdout } = await workshop.run("python", "-W", "error", "journey.py");
    expect(stdout).toBe("pilothouse.v1.SessionService\n");
  }, 300_000);

  test("compiles in Go, with the published packages of the vendored files", async () => {
    for (const plugin of goPlugins) await workshop.run("go", "install", plugin);
    const journey = join(workshop.directory, "journey");
    await mkdir(journey);
    const { stderr } = await protoc("--go_out=journey", "--go-grpc_out=journey", ...contract);
    expect(stderr).toBe("");
    await writeFile(join(journey, "main.go"), goProgram);
    await workshop.run("go", "-C", "journey", "mod", "init", "example.com/journey");
    await workshop.run("go", "-C", "journey", "mod", "tidy");
    await workshop.run("go", "-C", "journey", "vet", "./...");
    const { stdout } = await workshop.run("go", "-C", "journey", "run", ".");
    expect(stdout).toBe("pilothouse.v1.SessionService\n");
  }, 600_000);

  test("compiles in Java, vendored files included", async () => {
    await writeFile(join(workshop.directory, "pom.xml"), project);
    await cp(proto, join(workshop.directory, "proto"), { recursive: true });
    const { stdout } = await workshop.run("mvn", "-B", "-ntp", "compile");
    expect(stdout).not.toMatch(/^\[WARNING\]/m);
  }, 600_000);
});
