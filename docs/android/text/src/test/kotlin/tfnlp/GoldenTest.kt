package tfnlp

import java.io.File
import kotlin.test.Test
import kotlin.test.assertEquals

class GoldenTest {
    @Test
    fun rowsAndAnswersAreThoseOfPython() =
        assertEquals(emptyList<String>(), differences(File("src/test/resources/golden")))
}
