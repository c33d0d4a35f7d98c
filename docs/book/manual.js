// What mdBook's pages lack for those who use them by the keyboard.
'use strict';

(() => {
  // Blocks and tables that are wider than the page can be scrolled to, and only those are stops on the way.
  const scrolling = () => {
    for (const it of document.querySelectorAll('main pre code, main .table-wrapper')) {
      if (it.scrollWidth > it.clientWidth) it.tabIndex = 0;
      else it.removeAttribute('tabindex');
    }
  };
  scrolling();
  addEventListener('load', scrolling);
  addEventListener('resize', scrolling);

  // The button that opens and closes the contents.
  document.getElementById('mdbook-sidebar-toggle')?.addEventListener('click', () => {
    document.getElementById('mdbook-sidebar-toggle-anchor').click();
  });
})();
