// SPDX-License-Identifier: MIT OR Apache-2.0

import static org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.Unsigned.uint;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.eclipse.milo.opcua.sdk.core.AccessLevel;
import org.eclipse.milo.opcua.sdk.core.Reference;
import org.eclipse.milo.opcua.sdk.server.EndpointConfig;
import org.eclipse.milo.opcua.sdk.server.ManagedNamespaceWithLifecycle;
import org.eclipse.milo.opcua.sdk.server.OpcUaServer;
import org.eclipse.milo.opcua.sdk.server.OpcUaServerConfig;
import org.eclipse.milo.opcua.sdk.server.OpcUaServerConfigLimits;
import org.eclipse.milo.opcua.sdk.server.identity.AnonymousIdentityValidator;
import org.eclipse.milo.opcua.sdk.server.items.DataItem;
import org.eclipse.milo.opcua.sdk.server.items.MonitoredItem;
import org.eclipse.milo.opcua.sdk.server.nodes.UaFolderNode;
import org.eclipse.milo.opcua.sdk.server.nodes.UaVariableNode;
import org.eclipse.milo.opcua.sdk.server.util.SubscriptionModel;
import org.eclipse.milo.opcua.stack.core.NodeIds;
import org.eclipse.milo.opcua.stack.core.security.SecurityPolicy;
import org.eclipse.milo.opcua.stack.core.transport.TransportProfile;
import org.eclipse.milo.opcua.stack.core.types.builtin.ByteString;
import org.eclipse.milo.opcua.stack.core.types.builtin.DataValue;
import org.eclipse.milo.opcua.stack.core.types.builtin.DateTime;
import org.eclipse.milo.opcua.stack.core.types.builtin.LocalizedText;
import org.eclipse.milo.opcua.stack.core.types.builtin.NodeId;
import org.eclipse.milo.opcua.stack.core.types.builtin.StatusCode;
import org.eclipse.milo.opcua.stack.core.types.builtin.Variant;
import org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.UInteger;
import org.eclipse.milo.opcua.stack.core.types.enumerated.MessageSecurityMode;
import org.eclipse.milo.opcua.stack.core.types.enumerated.UserTokenType;
import org.eclipse.milo.opcua.stack.core.types.structured.UserTokenPolicy;
import org.eclipse.milo.opcua.stack.transport.server.tcp.OpcTcpServerTransport;
import org.eclipse.milo.opcua.stack.transport.server.tcp.OpcTcpServerTransportConfig;

/** An Eclipse Milo server with N changing variables. */
public final class MiloServer {
  private static final int FIRST_SIGNAL = 100000;
  private static final int SIGNAL_FOLDER = 99999;
  private static final String NAMESPACE = "urn:taktwerk:peer:milo:signals";

  /** The interop test node that clients write and are told of. */
  private static final String INTEROP = "urn:taktwerk:interop";

  private static final String PAYLOAD = "scalar/ByteString";

  private static String option(List<String> args, String name, String otherwise) {
    int at = args.indexOf(name);
    return at < 0 ? otherwise : args.get(at + 1);
  }

  public static void main(String[] argv) throws Exception {
    List<String> args = Arrays.asList(argv);
    String bind = option(args, "--bind", "127.0.0.1");
    int count = Integer.parseInt(option(args, "--variables", "0"));
    double update = Double.parseDouble(option(args, "--update", "0"));
    int port = Integer.parseInt(option(args, "--port", "4840"));
    if (port == 0) {
      try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(bind))) {
        port = socket.getLocalPort();
      }
    }
    EndpointConfig endpoint =
        EndpointConfig.newBuilder()
            .setTransportProfile(TransportProfile.TCP_UASC_UABINARY)
            .setBindAddress(bind)
            .setBindPort(port)
            .setHostname(bind)
            .setPath("")
            .setSecurityPolicy(SecurityPolicy.None)
            .setSecurityMode(MessageSecurityMode.None)
            .addTokenPolicy(new UserTokenPolicy("anonymous", UserTokenType.Anonymous, null, null, null))
            .build();
    OpcUaServerConfig config =
        OpcUaServerConfig.builder()
            .setApplicationUri("urn:taktwerk:peer:milo:server")
            .setApplicationName(LocalizedText.english("Milo peer"))
            .setProductUri("urn:taktwerk:peer:milo")
            .setEndpoints(Set.of(endpoint))
            .setIdentityValidator(AnonymousIdentityValidator.INSTANCE)
            .setLimits(new Limits())
            .build();
    OpcUaServer server =
        new OpcUaServer(
            config, profile -> new OpcTcpServerTransport(OpcTcpServerTransportConfig.newBuilder().build()));
    Signals signals = new Signals(server, count);
    signals.startup();
    new Interop(server).startup();
    server.startup().get();
    if (update > 0) {
      long period = (long) (update * 1e6);
      Executors.newSingleThreadScheduledExecutor()
          .scheduleAtFixedRate(signals::update, period, period, TimeUnit.NANOSECONDS);
    }
    if (args.contains("--exit-with-stdin")) {
      Thread watcher =
          new Thread(
              () -> {
                try {
                  while (System.in.read() >= 0) {}
                } catch (java.io.IOException gone) {
                  // The end as well.
                }
                Runtime.getRuntime().halt(0);
              });
      watcher.setDaemon(true);
      watcher.start();
    }
    int index = signals.getNamespaceIndex().intValue();
    if (index != 1) {
      System.out.println("NODE ns=" + index + ";i=" + FIRST_SIGNAL);
    }
    System.out.println("READY opc.tcp://" + bind + ":" + port);
    System.out.flush();
    Thread.currentThread().join();
  }

  private static final class Limits implements OpcUaServerConfigLimits {
    @Override
    public UInteger getMaxSessions() {
      return uint(10_000);
    }

    @Override
    public Double getMinPublishingInterval() {
      return 1.0;
    }

    @Override
    public Double getMinSupportedSampleRate() {
      return 1.0;
    }
  }

  /** Variables that can be read, written and monitored. */
  private abstract static class Variables extends ManagedNamespaceWithLifecycle {
    private final SubscriptionModel subscriptions;

    Variables(OpcUaServer server, String uri) {
      super(server, uri);
      subscriptions = new SubscriptionModel(server, this);
      getLifecycleManager().addLifecycle(subscriptions);
    }

    UaVariableNode create(NodeId id, String name, NodeId type, Object value) {
      UaVariableNode variable =
          new UaVariableNode.UaVariableNodeBuilder(getNodeContext())
              .setNodeId(id)
              .setBrowseName(newQualifiedName(name))
              .setDisplayName(LocalizedText.english(name))
              .setDataType(type)
              .setTypeDefinition(NodeIds.BaseDataVariableType)
              .setAccessLevel(AccessLevel.READ_WRITE)
              .setUserAccessLevel(AccessLevel.READ_WRITE)
              .setMinimumSamplingInterval(0.0)
              .build();
      variable.setValue(new DataValue(new Variant(value)));
      getNodeManager().addNode(variable);
      return variable;
    }

    @Override
    public void onDataItemsCreated(List<DataItem> items) {
      subscriptions.onDataItemsCreated(items);
    }

    @Override
    public void onDataItemsModified(List<DataItem> items) {
      subscriptions.onDataItemsModified(items);
    }

    @Override
    public void onDataItemsDeleted(List<DataItem> items) {
      subscriptions.onDataItemsDeleted(items);
    }

    @Override
    public void onMonitoringModeChanged(List<MonitoredItem> items) {
      subscriptions.onMonitoringModeChanged(items);
    }
  }

  private static final class Interop extends Variables {
    Interop(OpcUaServer server) {
      super(server, INTEROP);
      getLifecycleManager().addStartupTask(this::create);
    }

    private void create() {
      UaVariableNode payload =
          create(newNodeId(PAYLOAD), "ByteString", NodeIds.ByteString, ByteString.of(new byte[0]));
      payload.addReference(
          new Reference(
              payload.getNodeId(),
              NodeIds.Organizes,
              NodeIds.ObjectsFolder.expanded(),
              Reference.Direction.INVERSE));
    }
  }

  private static final class Signals extends Variables {
    private final List<UaVariableNode> variables = new ArrayList<>();
    private long turn;

    Signals(OpcUaServer server, int count) {
      super(server, NAMESPACE);
      getLifecycleManager().addStartupTask(() -> create(count));
    }

    private void create(int count) {
      NodeId folderId = newNodeId(SIGNAL_FOLDER);
      UaFolderNode folder =
          new UaFolderNode(getNodeContext(), folderId, newQualifiedName("signals"), LocalizedText.english("signals"));
      getNodeManager().addNode(folder);
      folder.addReference(
          new Reference(folderId, NodeIds.Organizes, NodeIds.ObjectsFolder.expanded(), Reference.Direction.INVERSE));
      for (int k = 0; k < count; k++) {
        UaVariableNode variable =
            create(newNodeId(FIRST_SIGNAL + k), "signal" + k, NodeIds.Double, (double) k);
        folder.addOrganizes(variable);
        variables.add(variable);
      }
    }

    void update() {
      turn++;
      DateTime now = DateTime.now();
      for (int k = 0; k < variables.size(); k++) {
        Variant value = new Variant((double) (turn + k));
        variables.get(k).setValue(new DataValue(value, StatusCode.GOOD, now, now));
      }
    }
  }
}
