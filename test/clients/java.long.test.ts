import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { builtServices, describeServices } from "../../tools/described-services.ts";
import { openWorkshop, type Workshop } from "./generated-client.ts";

const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>client</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <build>
    <plugins>
      <plugin>
        <groupId>org.openapitools</groupId>
        <artifactId>openapi-generator-maven-plugin</artifactId>
        <version>7.25.0</version>
        <executions>
          <execution>
            <goals><goal>generate</goal></goals>
            <configuration>
              <inputSpec>openapi.json</inputSpec>
              <generatorName>java</generatorName>
              <output>generated</output>
            </configuration>
          </execution>
        </executions>
      </plugin>
    </plugins>
  </build>
</project>
`;

/** Warnings about the generator itself: it prints them for documents of every service. */
const ofTheGenerator = [
  /^OpenAPI 3\.1 support is still in beta\./,
  /^Failed to get the schema name: null$/,
  /^Ignoring complex example on request body$/,
];

let workshop: Workshop;

beforeAll(async () => {
  workshop = await openWorkshop("bin");
});

afterAll(async () => {
  await workshop[Symbol.asyncDispose]();
});

test("a Java client is generated from the document without a warning that names it, and compiles", async () => {
  const { directory } = workshop;
  await writeFile(join(directory, "pom.xml"), project);
  await writeFile(join(directory, "openapi.json"), JSON.stringify(describeServices(builtServices)));
  const { stdout } = await workshop.run("mvn", "-B", "-ntp", "generate-sources");
  const warnings = [...stdout.matchAll(/^\[(?:WARNING|ERROR)\] (.*)$/gm)].map(([, text = ""]) => text);
  expect(warnings.filter((text) => !ofTheGenerator.some((known) => known.test(text)))).toEqual([]);
  await workshop.run("mvn", "-B", "-ntp", "-q", "-f", "generated/pom.xml", "compile");
}, 600_000);
