import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";
import { journeyResult, openWorkshop, type Workshop } from "./generated-client.ts";

const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
const journey = `package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"

	"example.com/journey/pilothouse"
)

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	}
	client, err := pilothouse.NewClientWithResponses(os.Args[1], pilothouse.WithRequestEditorFn(authorize))
	must(err)
	created, err := client.CreateSessionWithResponse(ctx, nil, pilothouse.CreateSessionRequest{})
	must(err)
	id := created.JSON201.Id
	x, y := 10.0, 10.0
	var action pilothouse.InteractRequest_Action
	must(action.FromInteractRequestActionTap(pilothouse.InteractRequestActionTap{X: &x, Y: &y}))
	request := pilothouse.InteractRequest{Action: action, Observe: &pilothouse.ObserveOptionsInput{}}
	tapped, err := client.InteractSessionWithResponse(ctx, id, nil, request)
	must(err)
	captures := []string{}
	for _, kind := range []pilothouse.CaptureKind{pilothouse.Screenshot, pilothouse.DomSnapshot, pilothouse.Pdf} {
		captured, err := client.CaptureSessionWithResponse(ctx, id, nil, pilothouse.CaptureRequest{Kind: kind})
		must(err)
		captures = append(captures, captured.JSON200.ContentType)
	}
	content := strings.NewReader("a file")
	put, err := client.PutFileWithBodyWithResponse(ctx, id, "note.txt", nil, "application/octet-stream", content)
	must(err)
	file, err := client.GetFileWithResponse(ctx, id, "note.txt", nil)
	must(err)
	_, err = client.DestroySessionWithResponse(ctx, id, nil)
	must(err)
	gone, err := client.GetSessionWithResponse(ctx, id, nil)
	must(err)
	problem := gone.ApplicationproblemJSON410
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"page": tapped.JSON200.Url, "captures": captures, "bytes": put.JSON201.Bytes, "text": string(file.Body),
		"type": problem.Type, "reason": problem.EndedReason,
	}))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
`;
let workshop: Workshop;
let service: Service | undefined;

beforeAll(async () => {
  // Modules are writable so that the folder can be removed.
  workshop = await openWorkshop("go/bin", (directory) => ({ GOPATH: join(directory, "go"), GOFLAGS: "-modcacherw" }));
  await workshop.run("go", "install", generator);
  service = await startService();
}, 600_000);

afterAll(async () => {
  await service?.stop();
  await workshop[Symbol.asyncDispose]();
});

test("a Go client generated from the served document compiles, drives a session and reads a problem", async () => {
  if (!service) throw new Error("the service is not set up");
  const { url, key } = service;
  const { directory } = workshop;
  await mkdir(join(directory, "journey/pilothouse"), { recursive: true });
  const target = ["-package", "pilothouse", "-generate", "types,client", "-o", "journey/pilothouse/client.go"];
  const { stderr } = await workshop.run("oapi-codegen", ...target, `${url}/v1/openapi.json`);
  expect(stderr).toBe("");
  await writeFile(join(directory, "journey/main.go"), journey);
  await workshop.run("go", "-C", "journey", "mod", "init", "example.com/journey");
  await workshop.run("go", "-C", "journey", "mod", "tidy");
  await workshop.run("go", "-C", "journey", "vet", "./...");
  const { stdout } = await workshop.run("go", "-C", "journey", "run", ".", url, key);
  expect(JSON.parse(stdout)).toEqual(journeyResult);
}, 600_000);
