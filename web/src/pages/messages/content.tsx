/** Keys, values and headers, always as text. JSON gets colours. */
import type { ComponentChildren } from 'preact';
import type { Content } from '../../api/types';
import { bytes } from '../../lib/format';

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;
const COLOURED_MAX = 200_000;

function indented(text: string): string {
  // Numbers beyond 2^53 and repeated keys would change; such a text stays as it is.
  try {
    const parsed: unknown = JSON.parse(text);
    const compact = JSON.stringify(parsed);
    return compact === text.replace(/\s+/g, '') || compact === text ? JSON.stringify(parsed, null, 2) : text;
  } catch {
    return text;
  }
}

function coloured(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    const [whole, string, colon, number] = match;
    if (match.index > end) parts.push(text.slice(end, match.index));
    const kind = string !== undefined ? (colon ? 'key' : 'string') : number !== undefined ? 'number' : 'word';
    const token = string ?? whole;
    parts.push(<span class={`json-${kind}`}>{token}</span>);
    end = match.index + token.length;
  }
  parts.push(text.slice(end));
  return parts;
}

export function Body({ content }: { content: Content }) {
  if (content.encoding === 'null') return <p class="quiet-line">null: no bytes</p>;
  if (content.size_bytes === 0) return <p class="quiet-line">empty: 0 bytes</p>;
  const text = content.text ?? '';
  const isJson = content.encoding === 'json' || content.encoding === 'avro';
  const shown = isJson ? indented(text) : text;
  return (
    <>
      <pre class="body" tabIndex={0}>{isJson && shown.length < COLOURED_MAX ? coloured(shown) : shown}</pre>
      {content.truncated && <p class="quiet-line">Only the beginning of {bytes(content.size_bytes)} is shown.</p>}
    </>
  );
}

const PREVIEW = 300;

/** A content in one line of a table. */
export function Preview({ content }: { content: Content }) {
  if (content.encoding === 'null') return <span class="null">null</span>;
  if (content.size_bytes === 0) return <span class="null">empty</span>;
  return <span class="mono">{(content.text ?? '').slice(0, PREVIEW).replace(/\s+/g, ' ')}</span>;
}

export function sizeOf(content: Content): string {
  return content.encoding === 'null' ? 'null' : bytes(content.size_bytes);
}
