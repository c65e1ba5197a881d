// Saves a picture of a page over gRPC: mvn -q compile exec:java -Dexec.args="https://example.com/ page.png"

import com.google.protobuf.Empty;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import pilothouse.v1.CaptureKind;
import pilothouse.v1.CaptureRequest;
import pilothouse.v1.CaptureResponse;
import pilothouse.v1.CreateSessionRequest;
import pilothouse.v1.DestroySessionRequest;
import pilothouse.v1.NavigateRequest;
import pilothouse.v1.NavigateResponse;
import pilothouse.v1.Session;

public class SavePicture {
  /** Calls a method of the service of sessions. */
  static <A extends Message> A call(Channel channel, String method, Message request, A response) {
    var descriptor = MethodDescriptor
        .newBuilder(ProtoUtils.marshaller(request.getDefaultInstanceForType()), ProtoUtils.marshaller(response))
        .setFullMethodName("pilothouse.v1.SessionService/" + method)
        .setType(MethodDescriptor.MethodType.UNARY)
        .build();
    var options = CallOptions.DEFAULT.withDeadlineAfter(1, TimeUnit.MINUTES);
    return ClientCalls.blockingUnaryCall(channel, descriptor, options, request);
  }

  public static void main(String[] args) throws Exception {
    var environment = System.getenv();
    var address = environment.getOrDefault("GRPC_ADDRESS", "localhost:8081");
    var headers = new Metadata();
    var name = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
    headers.put(name, "Bearer " + environment.get("PILOTHOUSE_API_KEY"));
    var connection = ManagedChannelBuilder.forTarget(address).usePlaintext().build();
    var channel = ClientInterceptors.intercept(connection, MetadataUtils.newAttachHeadersInterceptor(headers));
    var creation = CreateSessionRequest.getDefaultInstance();
    var id = call(channel, "Create", creation, Session.getDefaultInstance()).getId();
    try {
      var navigation = NavigateRequest.newBuilder().setId(id).setUrl(args[0]).build();
      var page = call(channel, "Navigate", navigation, NavigateResponse.getDefaultInstance());
      var capture = CaptureRequest.newBuilder().setId(id).setKind(CaptureKind.CAPTURE_KIND_SCREENSHOT).build();
      var captured = call(channel, "Capture", capture, CaptureResponse.getDefaultInstance());
      Files.write(Path.of(args[1]), captured.getData().toByteArray());
      System.out.println(page.getTitle());
    } finally {
      var end = DestroySessionRequest.newBuilder().setId(id).build();
      call(channel, "Destroy", end, Empty.getDefaultInstance());
      connection.shutdown();
    }
  }
}
