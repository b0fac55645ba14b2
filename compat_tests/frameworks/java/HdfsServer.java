import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * HDFS in one process, until it is ended, in the folder that is its argument. Prints its URI, and an HTTP URL below which each
 * file can be read: Hadoop's own REST API finds none of its resources in the jar of the MiniDFSCluster.
 */
public class HdfsServer {
    public static void main(String[] arguments) throws Exception {
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).numDataNodes(1).build();
        cluster.waitActive();
        FileSystem files = cluster.getFileSystem();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> sendFile(files, exchange));
        server.start();
        System.out.println("serves " + cluster.getURI() + " http://127.0.0.1:" + server.getAddress().getPort());
    }

    private static void sendFile(FileSystem files, HttpExchange exchange) throws IOException {
        try (InputStream file = files.open(new Path(exchange.getRequestURI().getPath()))) {
            byte[] contents = file.readAllBytes();
            // Length 0 stands for any length.
            exchange.sendResponseHeaders(HttpURLConnection.HTTP_OK, 0);
            exchange.getResponseBody().write(contents);
        } catch (FileNotFoundException problem) {
            exchange.sendResponseHeaders(HttpURLConnection.HTTP_NOT_FOUND, -1);
        } finally {
            exchange.close();
        }
    }
}
