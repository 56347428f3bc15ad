import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import {
  bracketMatching,
  defaultHighlightStyle,
  foldGutter,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
import { linter } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';

/** Larger texts are shown and not edited. */
const MAX_EDITED = 2 * 1024 * 1024;

/** Browsers take seconds to break a longer word into lines: such a line is scrolled sideways, inside the editor. */
const MAX_WRAPPED = 10_000;

function hasLongLine(text: string): boolean {
  for (let start = 0; start < text.length;) {
    const end = text.indexOf('\n', start);
    const next = end === -1 ? text.length : end;
    if (next - start > MAX_WRAPPED) return true;
    start = next + 1;
  }
  return false;
}

/** A JSON editor in a shadow root: there its styles need no permission of the page's policy. */
export function openEditor(
  host: HTMLElement,
  {
    text,
    label,
    isReadOnly,
    onChange,
  }: {
    text: string;
    label: string;
    isReadOnly: boolean;
    onChange: (text: string) => void;
  },
): () => void {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const fixed = isReadOnly || text.length > MAX_EDITED;
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        foldGutter(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        highlightSelectionMatches(),
        json(),
        text.length > MAX_EDITED ? [] : linter(jsonParseLinter(), { delay: 400 }),
        syntaxHighlighting(defaultHighlightStyle),
        hasLongLine(text) ? [] : EditorView.lineWrapping,
        EditorState.readOnly.of(fixed),
        // A text that is only read can be scrolled by keys too.
        EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
        // Tab leaves the editor, as it leaves every other field.
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
        EditorView.theme({
          '&': { height: '100%', fontSize: '13px', color: '#1b1f24', background: '#fff' },
          '&.cm-focused': { outline: '2px solid #0a58ca' },
          '.cm-scroller': { overflow: 'auto', fontFamily: 'ui-monospace, monospace' },
          '.cm-gutters': { color: '#57606a', background: '#f6f8fa' },
        }),
      ],
    }),
  });
  return () => view.destroy();
}
