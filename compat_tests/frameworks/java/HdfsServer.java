import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS in one process, until it is ended, in the folder that is its argument; prints its URI. */
public class HdfsServer {
    public static void main(String[] arguments) throws Exception {
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("serves " + cluster.getURI());
    }
}
