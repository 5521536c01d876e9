/** Who signed a file. Nothing can be signed here. */
import { FileView } from "../file/FileView.js";

export default () => <FileView />;
