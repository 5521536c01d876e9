/**
 * A text that somebody else chose, in an element of its own: it has another form than the words of this page, does not turn
 * round what stands beside it, and in a list is cut off alone.
 */
import { shownText } from "../state/names.js";

export const ForeignText = ({ text }: { readonly text: string }) => <bdi class="said">{shownText(text)}</bdi>;
