// Saves a picture of a page over gRPC: go run . https://example.com/ page.png
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	pilothouse "example.com/pilothouse-example/pilothouse/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

func run(ctx context.Context, url, file string) error {
	address := cmp.Or(os.Getenv("GRPC_ADDRESS"), "localhost:8081")
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv("PILOTHOUSE_API_KEY"))
	sessions := pilothouse.NewSessionServiceClient(connection)
	session, err := sessions.Create(ctx, &pilothouse.CreateSessionRequest{})
	if err != nil {
		return err
	}
	defer sessions.Destroy(ctx, &pilothouse.DestroySessionRequest{Id: session.Id})
	page, err := sessions.Navigate(ctx, &pilothouse.NavigateRequest{Id: session.Id, Url: url})
	if err != nil {
		return err
	}
	kind := pilothouse.CaptureKind_CAPTURE_KIND_SCREENSHOT
	captured, err := sessions.Capture(ctx, &pilothouse.CaptureRequest{Id: session.Id, Kind: kind})
	if err != nil {
		return err
	}
	fmt.Println(page.Title)
	return os.WriteFile(file, captured.Data, 0o644)
}

func main() {
	if len(os.Args) != 3 {
		log.Fatalf("expected a URL and a file, got %d arguments", len(os.Args)-1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
