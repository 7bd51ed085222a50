import { effect } from '@preact/signals';
import { render } from 'preact';
import { loadSession } from './api/session';
import { App } from './app';
import { startClock } from './lib/clock';
import { listenToKeys } from './lib/keys';
import { followLinks } from './lib/place';
import { applyTheme } from './lib/theme';

effect(applyTheme);
startClock();
followLinks();
listenToKeys();
void loadSession();

const root = document.getElementById('page');
if (root) render(<App />, root);
