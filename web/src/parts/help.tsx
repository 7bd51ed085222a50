/** The keys of the console. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { GOTO, helpOpen } from '../lib/keys';
import { Icon } from './icons';

const KEYS: [keys: string[], what: string][] = [
  [['Ctrl', 'K'], 'Search or command'],
  [['/'], 'Search in this page'],
  [['j'], 'Next row'],
  [['k'], 'Row before'],
  [['Enter'], 'Open the row'],
  [['Esc'], 'Close, or leave the search'],
  [['?'], 'These keys'],
];

function Keys({ keys }: { keys: string[] }) {
  return (
    <dt>
      {keys.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </dt>
  );
}

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const close = () => {
    helpOpen.value = false;
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="help-title" onClose={close}
      onClick={(event) => event.target === dialog.current && close()}>
      <div class="dialog-body">
        <header>
          <h2 id="help-title">Keys</h2>
          <button class="icon-button" type="button" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        <dl class="keys">
          {KEYS.map(([keys, what]) => (
            <div key={what}>
              <Keys keys={keys} />
              <dd>{what}</dd>
            </div>
          ))}
          {Object.entries(GOTO).map(([key, [, name]]) => (
            <div key={key}>
              <Keys keys={['g', key]} />
              <dd>{name}</dd>
            </div>
          ))}
        </dl>
      </div>
    </dialog>
  );
}
