/** Shows who signed a file. Published files take no signatures. */
import { FileView } from "../file/FileView.js";

export default () => <FileView />;
